package content_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func requireContents(s sqltest.Session, want int) {
	s.Helper()
	sqltest.Equal(s, want, "select count(*)::int from parley_store.contents")
}

func TestContentIsReadByWhoRefersToIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.add_system('other')")
	const putBody = "select parley_store.put_body('mail', 7, convert_to(repeat('x', $1), 'UTF8'))"
	sizes := []int{0, 1, 8000, 8001, 524288, 524289, 2000000}
	for i, bytes := range append(sizes, sizes...) {
		var id int64
		if i < len(sizes) {
			id = b.PutContent(7, bytes)
		} else {
			id = sqltest.Value[int64](b.Session, putBody, bytes)
		}
		sqltest.Equal(b.Session, int64(bytes), "select bytes from parley_store.open_content($1, 'mail', 7)", id)
		sqltest.Equal(b.Session, true, `select o.sha256 = sha256(convert_to(repeat('x', $2), 'UTF8'))
			and coalesce(o.body, (select string_agg(r.body, '' order by r.number) from parley_store.read_content($1, 'mail', 7) as r))
				= convert_to(repeat('x', $2), 'UTF8')
			from parley_store.open_content($1, 'mail', 7) as o`, id, bytes)
		for _, outsider := range []string{"'mail', 8", "'other', 7", "'mail', null", "null, 7", "null, null"} {
			b.Fails("PS003", fmt.Sprintf("select parley_store.open_content(%d, %s)", id, outsider))
			sqltest.Equal(b.Session, 0, fmt.Sprintf("select count(*)::int from parley_store.read_content(%d, %s)", id, outsider))
			b.Fails("PS003", fmt.Sprintf("select parley_store.share_content(%d, coalesce(x.s, 'mail'), x.h, 9) from (values (%s)) as x (s, h) where x.s is not null", id, "'mail', 8"))
		}
	}
	b.Fails("PS003", "select parley_store.open_content(null, 'mail', 7)")
	b.Fails("PS002", "select parley_store.put_content('mail', array[null::bigint], array['x'::bytea])")
	b.Fails("PS002", "select parley_store.put_content('mail', array[1], array[null::bytea])")
	b.Fails("PS002", "select parley_store.put_body('mail', null, 'x')")
	b.Fails("PS002", "select parley_store.put_body('mail', 1, null)")
	b.Fails("PS001", "select parley_store.put_body('no such', 1, 'x')")
}

// A body goes with its last reference, and not before.
func TestContentGoesWithItsLastReference(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	for _, bytes := range []int{10, 600000} {
		id := b.PutContent(1, bytes)
		b.Exec("select parley_store.share_content($1, 'mail', 1, 2)", id)
		sqltest.Equal(b.Session, 0, "select parley_store.release_content('mail', array[1])")
		requireContents(b.Session, 1)
		sqltest.Equal(b.Session, 1, "select parley_store.release_content('mail', array[2])")
		requireContents(b.Session, 0)
	}
}

// Two that release the last references of a body at once do not leave it behind, and one that shares it meanwhile keeps it.
func TestContentOfConcurrentHolders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	id := b.PutContent(1, 600000)
	b.Exec("select parley_store.share_content($1, 'mail', 1, 2)", id)
	one, two := b.Begin(), b.Begin()
	one.Exec("select parley_store.release_content('mail', array[1])")
	two.Exec("select parley_store.release_content('mail', array[2])")
	one.Commit()
	two.Commit()
	b.Exec("select parley_store.collect_content(), parley_store.collect_content()")
	requireContents(b.Session, 0)

	for _, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		id = b.PutContent(1, 600000)
		releaser, sharer := b.Begin(pgx.TxOptions{IsoLevel: isolation}), b.Begin()
		sqltest.Equal(releaser, true, "select count(*) > 0 from parley_store.contents")
		sharer.Exec("select parley_store.share_content($1, 'mail', 1, 3)", id)
		sharer.Commit()
		releaser.Exec("select parley_store.release_content('mail', array[1])")
		releaser.Commit()
		b.Exec("select parley_store.collect_content(), parley_store.collect_content()")
		sqltest.Equal(b.Session, 2, "select count(*)::int from parley_store.read_content($1, 'mail', 3)", id)
		b.Exec("select parley_store.release_content('mail', array[3])")
	}
	b.Fails("PS009", "begin isolation level repeatable read; select parley_store.collect_content()")
}

// A body that is written in several transactions can be read when it is whole, and goes when nobody finishes it.
func TestContentThatWasBegun(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	begin := func() int64 {
		return sqltest.Value[int64](b.Session, "select content_id from parley_store.begin_content('mail', 1, chunk_bytes => 1024)")
	}
	id := begin()
	b.Exec("select parley_store.append_content($1, 0, convert_to(repeat('x', 1024), 'UTF8'))", id)
	b.Fails("PS003", fmt.Sprintf("select parley_store.open_content(%d, 'mail', 1)", id))
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.read_content($1, 'mail', 1)", id)
	b.Exec("select parley_store.append_content($1, 1, 'y')", id)
	b.Fails("PS004", fmt.Sprintf("select parley_store.finish_content(%d, 1024, sha256('y'))", id))
	b.Exec("select parley_store.finish_content($1, 1025, sha256('y'))", id)
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_store.read_content($1, 'mail', 1)", id)
	b.Fails("PS003", fmt.Sprintf("select parley_store.append_content(%d, 2, 'z')", id))
	b.Fails("PS003", fmt.Sprintf("select parley_store.finish_content(%d, 1025, sha256('y'))", id))

	gap := begin()
	b.Exec("select parley_store.append_content($1, 1, 'y')", gap)
	b.Fails("PS004", fmt.Sprintf("select parley_store.finish_content(%d, 1, sha256('y'))", gap))
	b.Exec("select parley_store.collect_content()")
	requireContents(b.Session, 2)
	b.Exec("update parley_store._p_content set begun_until = clock_timestamp() - interval '1 second' where begun_until is not null")
	b.Exec("select parley_store.collect_content()")
	requireContents(b.Session, 1)
	b.Fails("PS003", fmt.Sprintf("select parley_store.append_content(%d, 0, 'y')", gap))
}

// A generation is left when it is old, emptied of what stays, and truncated; whoever still writes into it loses nothing.
func TestGenerationsOfContent(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	const collect = "select parley_store.collect_content(1000, '0 seconds', $1)"
	const chunks = "select count(*)::int from parley_store._p_content_chunk"
	stays, goes := b.PutContent(1, 600000), b.PutContent(2, 600000)
	writer := b.Begin()
	late := writer.PutContent(3, 600000)
	b.Exec(collect, "1 hour")
	sqltest.Equal(b.Session, int16(2), "select parley_store._p_current_slot()")
	sqltest.Equal(b.Session, 1, "select parley_store.release_content('mail', array[2])")
	_ = goes
	sqltest.Equal(b.Session, 4, chunks)
	b.Exec(collect, "0 seconds")
	sqltest.Equal(b.Session, 2, sqltest.LongLived)
	writer.Commit()
	sqltest.Equal(b.Session, false, "select parley_store._p_truncate_generation(slot) from parley_store._p_content where content_id = $1", late)
	for range 12 {
		b.Exec(collect, "0 seconds")
	}
	sqltest.Equal(b.Session, 4, sqltest.LongLived)
	sqltest.Equal(b.Session, 4, chunks)
	for holder, id := range map[int]int64{1: stays, 3: late} {
		sqltest.Equal(b.Session, 2, "select count(*)::int from parley_store.read_content($1, 'mail', $2)", id, holder)
	}
	b.Exec("select parley_store.release_content('mail', array[1, 3])")
	sqltest.Equal(b.Session, 0, chunks)
}

// Reading in an old snapshot, as a dump does, keeps what it can see; who reads one body keeps its generation and no other.
func TestAReaderKeepsAGeneration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reads     string
		isolation pgx.TxIsoLevel
		kept      string // generations that are not given back
		chunks    int
	}{
		{"read_content", pgx.RepeatableRead, "1 2 3 4 5 6 7", 4},
		{"read_chunks", pgx.RepeatableRead, "1 2 3 4 5 6 7", 4},
		{"read_chunks", pgx.ReadCommitted, "1", 2},
	} {
		b := sqltest.NewStore(t)
		id := b.PutContent(1, 600000)
		b.Exec("select parley_store.collect_content(1000, '0 seconds')")
		b.PutContent(2, 600000)
		reader := b.Begin(pgx.TxOptions{IsoLevel: c.isolation})
		read := fmt.Sprintf("select count(*)::int from parley_store.%s(%d, 'mail', 1)", c.reads, id)
		sqltest.Equal(reader, 2, read)
		// Its driver leaves the query open, with its snapshot, until the next statement.
		reader.Exec("savepoint read")
		b.Exec("select parley_store.release_content('mail', array[1, 2])")
		for range 7 {
			b.Exec("select parley_store.collect_content(1000, '0 seconds', '0 seconds')")
		}
		sqltest.Equal(b.Session, c.kept, "select string_agg(generation::text, ' ' order by generation) from parley_store.held_generations")
		sqltest.Equal(b.Session, c.chunks, "select count(*)::int from parley_store._p_content_chunk")
		sqltest.Equal(b.Session, sqltest.Value[int32](reader, "select pg_backend_pid()"), "select min(pid) from parley_store.held_generations")
		if c.isolation == pgx.RepeatableRead {
			sqltest.Equal(reader, 2, read)
		}
		reader.Rollback()
		for range 3 {
			b.Exec("select parley_store.collect_content(1000, '1 hour', '0 seconds')")
		}
		sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store._p_content_chunk")
		sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.held_generations")
	}
}

// A generation that turns out to be in use is let go of at once, and not at the end of the transaction; nothing waits for its TOAST table.
func TestAGenerationThatIsInUseStaysUnlocked(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	user := b.Begin()
	for _, use := range []func(){
		func() { b.PutContent(1, 600000) },
		func() {
			b.Exec("select parley_store.release_content('mail', array[1])")
			user.Exec("select count(*) from " + sqltest.Value[string](b.Session, "select reltoastrelid::regclass::text from pg_class where oid = 'parley_store._p_content_chunk_1'::regclass"))
		},
	} {
		use()
		tx := b.Begin()
		sqltest.Equal(tx, false, "select parley_store._p_truncate_generation(1::smallint)")
		sqltest.Equal(tx, 0, "select count(*)::int from pg_locks where pid = pg_backend_pid() and mode = 'AccessExclusiveLock'")
		tx.Rollback()
	}
	user.Rollback()
	sqltest.Equal(b.Session, true, "select parley_store._p_truncate_generation(1::smallint)")
}

// Of the bodies that are left in an old generation a hundredth of what is checked is moved at a time, and one at least.
func TestStragglersAreMovedByTheHundredth(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	for holder := range 5 {
		b.PutContent(holder+1, 9000)
	}
	b.Exec("select parley_store.collect_content(1000, '0 seconds')")
	const moved = "select moved from parley_store.collect_content($1, '1 hour', '0 seconds')"
	sqltest.Equal(b.Session, 1, moved, 1)
	sqltest.Equal(b.Session, 3, moved, 399)
	sqltest.Equal(b.Session, 1, moved, 200)
}

// A generation is held by who has a lock on it, and not by who has one on something else, or in another database.
func TestAGenerationIsHeldByWhoReadsIt(t *testing.T) {
	t.Parallel()
	b, another := sqltest.NewStore(t), sqltest.NewStore(t)
	b.PutContent(1, 9000)
	b.Exec("select parley_store.collect_content(1000, '0 seconds')")
	b.Exec("select parley_store.release_content('mail', array[1])")
	elsewhere, beside, holder := another.Begin(), b.Begin(), b.Begin()
	elsewhere.Exec("lock table parley_store._p_content_chunk_1 in access share mode")
	beside.Exec("lock table parley_store._p_content_chunk_2, parley_store.held_generations in access share mode")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.held_generations")
	holder.Exec("lock table parley_store._p_content_chunk_1 in access share mode")
	sqltest.Equal(b.Session, sqltest.Value[int32](holder, "select pg_backend_pid()"), "select pid from parley_store.held_generations")
}
