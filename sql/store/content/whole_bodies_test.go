package content_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// collect collects content, and begins no new generation.
func collect(s sqltest.Session) {
	s.Helper()
	s.Exec("select parley_store.collect_content(1000, '1 hour', '0 seconds')")
}

// A reader whose snapshot was taken before a body was moved out of its generation, or removed, gets all of it afterwards: he may have
// waited for a lock, or for anything else. The chunks that he could see are truncated when he is gone.
func TestAGenerationIsTruncatedWhenNobodySeesABodyInIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		goes string // has the body leave its generation
	}{
		{"moved", "select parley_store.collect_content(1000, '1 hour', '0 seconds')"},
		{"removed", "select parley_store.release_content('mail', array[1])"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			id := b.PutContent(1, 600000)
			b.Exec("select parley_store.collect_content(1000, '0 seconds')")
			reader := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			// A snapshot, and no lock on what he is going to read.
			reader.Exec("select 1")
			b.Exec(c.goes)
			for range 5 {
				collect(b.Session)
			}
			sqltest.Equal(b.Session, "1", "select string_agg(generation::text, ' ') from parley_store.held_generations")
			sqltest.Equal(b.Session, sqltest.Value[int32](reader, "select pg_backend_pid()"), "select pid from parley_store.held_generations")
			sqltest.Equal(reader, "2 600000", "select concat_ws(' ', count(*), sum(octet_length(k.body))) from parley_store.read_chunks($1, 'mail', 1) as k", id)
			sqltest.Equal(reader, "2 600000", "select concat_ws(' ', count(*), sum(octet_length(k.body))) from parley_store.read_content($1, 'mail', 1) as k", id)
			sqltest.Equal(reader, 600000, "select octet_length(parley_store.read_bytes($1, 'mail', 1))", id)
			reader.Rollback()
			for range 3 {
				collect(b.Session)
			}
			sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store._p_content_chunk where slot = 1")
			sqltest.Equal(b.Session, true, "select opened_at = '-infinity' and left_by is null and emptied_by is null from parley_store._p_content_generation where slot = 1")
		})
	}
}

// The transaction that moves the last body out of a generation does not truncate it: a reader may wait for its lock with a snapshot from before.
func TestWhoMovesBodiesOutOfAGenerationDoesNotTruncateIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutContent(1, 600000)
	b.Exec("select parley_store.collect_content(1000, '0 seconds')")
	collect(b.Session)
	const moved = "select concat_ws(' ', c.moved, c.generations_emptied) from parley_store.collect_content(1000, '1 hour', '0 seconds') as c"
	b.PutContent(2, 600000)
	sqltest.Equal(b.Session, "0 0", moved)
	sqltest.Equal(b.Session, "0 1", moved)

	// Nor while a transaction is open that began to write a body when the generation was written.
	b.Exec("select parley_store.collect_content(1000, '0 seconds')")
	writer := b.Begin()
	late := sqltest.Value[int64](writer, "select content_id from parley_store.begin_content('mail', 3)")
	slot := sqltest.Value[int16](b.Session, "select parley_store._p_current_slot()")
	b.Exec("select parley_store.collect_content(1000, '0 seconds')")
	for range 5 {
		collect(b.Session)
	}
	sqltest.Equal(b.Session, sqltest.Value[int32](writer, "select pg_backend_pid()"), "select pid from parley_store.held_generations where generation = $1", slot)
	sqltest.Equal(b.Session, true, "select left_by is not null and emptied_by is null from parley_store._p_content_generation where slot = $1", slot)
	writer.Exec("select parley_store.append_content($1, 0, 'x')", late)
	writer.Exec("select parley_store.finish_content($1, 1, sha256('x'))", late)
	writer.Commit()
	for range 5 {
		collect(b.Session)
	}
	sqltest.Equal(b.Session, "x", "select convert_from(parley_store.read_bytes($1, 'mail', 3), 'UTF8')", late)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.held_generations")
}

// A copy of another server has marks of transactions that are not of this one: they count for nothing.
func TestAGenerationOfACopyIsGivenBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutContent(1, 600000)
	b.Exec("select parley_store.collect_content(1000, '0 seconds')")
	collect(b.Session)
	b.Exec("update parley_store._p_content_generation set left_by = '9000000000000', emptied_by = '9000000000001' where slot = 1")
	b.Exec("select parley_store.release_content('mail', array[1])")
	for range 3 {
		collect(b.Session)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store._p_content_chunk")
}

// A reader of a body of which chunks are missing gets an error and nothing else; no more rows are not the end.
func TestAPartOfABodyIsNoBody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	id := b.PutContent(1, 1_600_000)
	sqltest.Equal(b.Session, 1_600_000, "select octet_length(parley_store.read_bytes($1, 'mail', 1))", id)
	for _, c := range []struct{ from, bytes, want int }{
		{0, 0, 0}, {0, 1, 1}, {524287, 2, 2}, {524288, 524288, 524288}, {1_599_999, 10, 1}, {1_600_000, 10, 0}, {2_000_000, 1, 0},
	} {
		sqltest.Equal(b.Session, true, fmt.Sprintf("select parley_store.read_bytes(%d, 'mail', 1, %d, %d) = substring(parley_store.read_bytes(%[1]d, 'mail', 1) from %[4]d for %[5]d)",
			id, c.from, c.bytes, c.from+1, c.bytes))
		sqltest.Equal(b.Session, c.want, fmt.Sprintf("select octet_length(parley_store.read_bytes(%d, 'mail', 1, %d, %d))", id, c.from, c.bytes))
	}
	sqltest.Equal(b.Session, "1 2", "select string_agg(k.number::text, ' ' order by k.number) from parley_store.read_chunks($1, 'mail', 1, 1, 2) as k", id)
	b.Fails("PS003", fmt.Sprintf("select parley_store.read_chunks(%d, 'mail', 2)", id))
	b.Fails("PS003", fmt.Sprintf("select parley_store.read_bytes(%d, 'mail', 2)", id))
	for _, missing := range []string{"number = 2", "number = 3", "number >= 0"} {
		tx := b.Begin()
		tx.Exec("delete from parley_store._p_content_chunk where " + missing)
		for _, read := range []string{"read_chunks(%d, 'mail', 1)", "read_bytes(%d, 'mail', 1)", "read_bytes(%d, 'mail', 1, 1048576)"} {
			tx.Exec("savepoint s")
			tx.Fails("PS010", "select parley_store."+fmt.Sprintf(read, id))
			tx.Exec("rollback to s")
		}
		if missing == "number = 3" {
			sqltest.Equal(tx, 10, "select octet_length(parley_store.read_bytes($1, 'mail', 1, 0, 10))", id)
		}
		tx.Rollback()
	}
	tx := b.Begin()
	tx.Exec("update parley_store._p_content_chunk set body = substring(body from 2) where number = 3")
	tx.Fails("PS010", fmt.Sprintf("select parley_store.read_bytes(%d, 'mail', 1)", id))
	tx.Rollback()
}
