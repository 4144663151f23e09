package bottleneck

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cache counts the content of shared_buffers at the end of the last run.
type Cache struct {
	All       int64            `json:"all"` // of 8 KB each, unless the server was built otherwise
	Unused    int64            `json:"unused"`
	Dirty     int64            `json:"dirty"`
	Pinned    int64            `json:"pinned"`
	Relations []BufferRelation `json:"relations"`
}

// BufferRelation counts the buffers of one relation of the benchmark.
type BufferRelation struct {
	Name    string  `json:"name"`
	Fork    string  `json:"fork"` // "main", "free space map", "visibility map", "init"
	Buffers int64   `json:"buffers"`
	Share   float64 `json:"share"` // of all
	Dirty   int64   `json:"dirty"`
	Pinned  int64   `json:"pinned"`
	// Usage is how many have each usage count, from 0 to 5: the clock that evicts passes a buffer so often before it takes it.
	Usage []int64 `json:"usage"`
}

const (
	// mostRelations are listed.
	mostRelations = 12
	// mostBuffers is how many are read, 8 GB of them: more take seconds, in which the server does not do what is measured.
	mostBuffers = 1 << 20
	// longestRead is how long reading the buffers may take to be repeated in the next window.
	longestRead = 200 * time.Millisecond
)

// buffersStatement reads the view once, which takes no lock on buffers but reads each, and gives the sums of all with each relation.
const buffersStatement = `
	select
		r.database, r.node, r.fork, r.buffers, r.dirty, r.pinned, r.usage, r.every, r.unused, r.every_dirty, r.every_pinned
	from (
		select
			g.*, d.datname::text as database, pg_catalog.sum(g.buffers) over ()::bigint as every,
			coalesce(pg_catalog.sum(g.buffers) filter (where g.node is null) over (), 0)::bigint as unused,
			pg_catalog.sum(g.dirty) over ()::bigint as every_dirty, pg_catalog.sum(g.pinned) over ()::bigint as every_pinned
		from (
			select
				b.reldatabase, b.relfilenode::bigint as node, b.relforknumber::integer as fork, pg_catalog.count(*) as buffers,
				pg_catalog.count(*) filter (where b.isdirty) as dirty, pg_catalog.count(*) filter (where b.pinning_backends > 0) as pinned,
				array[
					pg_catalog.count(*) filter (where b.usagecount = 0), pg_catalog.count(*) filter (where b.usagecount = 1),
					pg_catalog.count(*) filter (where b.usagecount = 2), pg_catalog.count(*) filter (where b.usagecount = 3),
					pg_catalog.count(*) filter (where b.usagecount = 4), pg_catalog.count(*) filter (where b.usagecount = 5)
				] as usage
			from %s.pg_buffercache as b
			group by 1, 2, 3
		) as g
		left join pg_catalog.pg_database as d on d.oid = g.reldatabase
	) as r
	where r.database = any($1)
	order by r.buffers desc, r.node, r.fork
	limit $2`

var forks = []string{"main", "free space map", "visibility map", "init"}

// readBuffers reads what the buffers hold of the databases that are in use.
func (s *Sampler) readBuffers(ctx context.Context) {
	schema, is := s.schemas[extensionBuffers]
	switch {
	case !is:
		s.note("The content of the buffers was not seen: the extension %s is not there, or the role may not create it", extensionBuffers)
		return
	case s.isTooLarge:
		return
	}
	var all int64
	err := s.conn.QueryRow(ctx, `
		select p.setting::bigint from pg_catalog.pg_settings as p where p.name = 'shared_buffers'`).Scan(&all)
	if err == nil && all > mostBuffers {
		s.isTooLarge = true
		s.note("The content of the buffers was not read: there are %d, which would take seconds", all)
		return
	}
	begun := time.Now()
	found, err := s.buffersNow(ctx, schema)
	if err != nil {
		s.note("The content of the buffers was not seen: %v", err)
		return
	}
	s.buffers = found
	if time.Since(begun) > longestRead {
		s.isTooLarge = true
		s.note("The content of the buffers is that of the first run: reading it takes %s", time.Since(begun).Round(time.Millisecond))
	}
}

func (s *Sampler) buffersNow(ctx context.Context, schema string) (*Cache, error) {
	names, err := s.inUse(ctx)
	if err != nil {
		return nil, err
	}
	b := &Cache{Relations: []BufferRelation{}}
	rows, err := s.conn.Query(ctx, fmt.Sprintf(buffersStatement, schema), names, mostRelations)
	if err != nil {
		return nil, fmt.Errorf("read the buffers: %w", err)
	}
	var places []filePlace
	var at filePlace
	var fork int
	var one BufferRelation
	_, err = pgx.ForEachRow(rows, []any{
		&at.database, &at.node, &fork, &one.Buffers, &one.Dirty, &one.Pinned, &one.Usage, &b.All, &b.Unused, &b.Dirty, &b.Pinned,
	}, func() error {
		one.Fork, one.Share = forks[fork], float64(one.Buffers)/float64(max(1, b.All))
		b.Relations, places = append(b.Relations, one), append(places, at)
		one.Usage = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the buffers: %w", err)
	}
	if err := s.nameRelations(ctx, b, places); err != nil {
		return nil, err
	}
	b.merge()
	return b, nil
}

// merge adds up relations of one name, which several databases of the benchmark have.
func (c *Cache) merge() {
	var merged []BufferRelation
	for _, r := range c.Relations {
		i := slices.IndexFunc(merged, func(m BufferRelation) bool { return m.Name == r.Name && m.Fork == r.Fork })
		if i < 0 {
			merged = append(merged, r)
			continue
		}
		m := &merged[i]
		m.Buffers, m.Share, m.Dirty, m.Pinned = m.Buffers+r.Buffers, m.Share+r.Share, m.Dirty+r.Dirty, m.Pinned+r.Pinned
		for k := range m.Usage {
			m.Usage[k] += r.Usage[k]
		}
	}
	slices.SortStableFunc(merged, func(x, y BufferRelation) int { return cmp.Compare(y.Buffers, x.Buffers) })
	c.Relations = merged
}

// filePlace is a file of a database.
type filePlace struct {
	database string
	node     int64
}

// nameRelations gives the relations their names, which their own database has.
func (s *Sampler) nameRelations(ctx context.Context, b *Cache, places []filePlace) error {
	of := map[string][]int{}
	for i, p := range places {
		of[p.database] = append(of[p.database], i)
	}
	for database, files := range of {
		err := s.inDatabase(ctx, database, func(conn *pgx.Conn) error {
			for _, i := range files {
				var name *string
				err := conn.QueryRow(ctx, "select pg_catalog.pg_filenode_relation(0, $1::bigint::oid)::regclass::text",
					places[i].node).Scan(&name)
				if err != nil {
					return fmt.Errorf("name a relation: %w", err)
				}
				b.Relations[i].Name = fmt.Sprintf("file %d", places[i].node)
				if name != nil {
					b.Relations[i].Name = *name
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
