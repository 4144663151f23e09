package bottleneck

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// The extensions that answer questions of the fourth level, where they are.
const (
	extensionBuffers    = "pg_buffercache"
	extensionStatements = "pg_stat_statements"
)

// Extensions are those that the database of a sampler may have.
func Extensions() []string { return []string{extensionBuffers, extensionStatements} }

// answers hold the knowledge of the sampler beside the waits: content of the buffers, changes of tables, statements, old snapshots.
type answers struct {
	schemas map[string]string // of the extensions that are there; nil before it was asked
	notes   []string

	buffers    *Cache
	isTooLarge bool // reading the buffers takes too long to be repeated

	tablesBefore map[tableKey]Table
	tables       map[string]*Table

	statementsBefore map[int64]Statement
	statements       map[int64]*Statement

	holders []Holder
}

// learn finds out which extensions are there.
func (s *Sampler) learn(ctx context.Context) error {
	if s.schemas != nil {
		return nil
	}
	s.schemas, s.tables, s.statements = map[string]string{}, map[string]*Table{}, map[int64]*Statement{}
	rows, err := s.conn.Query(ctx, `
		select e.extname, pg_catalog.quote_ident(n.nspname)
		from pg_catalog.pg_extension as e
		join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
		where e.extname = any($1)`, Extensions())
	if err != nil {
		return fmt.Errorf("find extensions: %w", err)
	}
	var name, schema string
	_, err = pgx.ForEachRow(rows, []any{&name, &schema}, func() error {
		s.schemas[name] = schema
		return nil
	})
	if err != nil {
		return fmt.Errorf("find extensions: %w", err)
	}
	return nil
}

// note adds a line on what could not be seen, once.
func (s *Sampler) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(s.notes, line) {
		s.notes = append(s.notes, line)
	}
}

// askBefore reads what the answers are differences of. A question without an answer becomes a line in the analysis; the run
// goes on.
func (s *Sampler) askBefore(ctx context.Context) {
	if err := s.learn(ctx); err != nil {
		s.note("%v", err)
		return
	}
	s.statementsBefore = s.readStatements(ctx)
	s.tablesBefore = s.readTables(ctx)
}

// askAfter reads the answers, and adds them to those of earlier windows.
func (s *Sampler) askAfter(ctx context.Context) {
	if s.schemas == nil {
		return
	}
	s.addStatements(s.readStatements(ctx))
	s.addTables(s.readTables(ctx))
	s.readHorizon(ctx)
	s.readBuffers(ctx)
}

// inUse are the databases of the benchmark that have sessions, but for the sampler's own.
func (s *Sampler) inUse(ctx context.Context) ([]string, error) {
	rows, err := s.conn.Query(ctx, `
		select a.datname::text
		from pg_catalog.pg_stat_activity as a
		where pg_catalog.starts_with(a.datname, $1) and a.datname <> pg_catalog.current_database() and a.backend_type = 'client backend'
		group by a.datname
		order by pg_catalog.count(*) desc
		limit $2`, s.prefix, mostDatabases)
	if err != nil {
		return nil, fmt.Errorf("find the benchmark's databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find the benchmark's databases: %w", err)
	}
	return names, nil
}

// mostDatabases are asked for their tables: each costs a connection.
const mostDatabases = 8

// inDatabase runs work on a connection to another database of the server.
func (s *Sampler) inDatabase(ctx context.Context, name string, work func(conn *pgx.Conn) error) error {
	config := s.conn.Config().Copy()
	config.Database = name
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", name, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return work(conn)
}

// answer takes the answers over into an analysis.
func (s *Sampler) answer(a *Analysis) {
	a.Notes = append(a.Notes, s.notes...)
	a.Buffers, a.Horizon = s.buffers, s.holders
	a.Tables, a.Statements = busiest(s.tables), heaviest(s.statements)
}
