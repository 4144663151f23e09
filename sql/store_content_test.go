package sql_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

func (s session) putContent(holder, bytes int) (contentID int64) {
	s.Helper()
	return value[int64](s, "select (parley_store.put_content('mail', array[$1::bigint], array[convert_to(repeat('x', $2), 'UTF8')]))[1]", holder, bytes)
}

func (s session) requireContents(want int) {
	s.Helper()
	equal(s, want, "select count(*)::int from parley_store.contents")
}

const longLived = "select count(*)::int from parley_store._p_content_chunk_0"

func TestContentIsReadByWhoRefersToIt(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	b.exec("select parley_store.add_system('other')")
	const putBody = "select parley_store.put_body('mail', 7, convert_to(repeat('x', $1), 'UTF8'))"
	sizes := []int{0, 1, 8000, 8001, 524288, 524289, 2000000}
	for i, bytes := range append(sizes, sizes...) {
		var id int64
		if i < len(sizes) {
			id = b.putContent(7, bytes)
		} else {
			id = value[int64](b.session, putBody, bytes)
		}
		equal(b.session, int64(bytes), "select bytes from parley_store.open_content($1, 'mail', 7)", id)
		equal(b.session, true, `select o.sha256 = sha256(convert_to(repeat('x', $2), 'UTF8'))
			and coalesce(o.body, (select string_agg(r.body, '' order by r.number) from parley_store.read_content($1, 'mail', 7) as r))
				= convert_to(repeat('x', $2), 'UTF8')
			from parley_store.open_content($1, 'mail', 7) as o`, id, bytes)
		for _, outsider := range []string{"'mail', 8", "'other', 7", "'mail', null", "null, 7", "null, null"} {
			b.fails("PS003", fmt.Sprintf("select parley_store.open_content(%d, %s)", id, outsider))
			equal(b.session, 0, fmt.Sprintf("select count(*)::int from parley_store.read_content(%d, %s)", id, outsider))
			b.fails("PS003", fmt.Sprintf("select parley_store.share_content(%d, coalesce(x.s, 'mail'), x.h, 9) from (values (%s)) as x (s, h) where x.s is not null", id, "'mail', 8"))
		}
	}
	b.fails("PS003", "select parley_store.open_content(null, 'mail', 7)")
	b.fails("PS002", "select parley_store.put_content('mail', array[null::bigint], array['x'::bytea])")
	b.fails("PS002", "select parley_store.put_content('mail', array[1], array[null::bytea])")
	b.fails("PS002", "select parley_store.put_body('mail', null, 'x')")
	b.fails("PS002", "select parley_store.put_body('mail', 1, null)")
	b.fails("PS001", "select parley_store.put_body('no such', 1, 'x')")
}

// A body goes with its last reference, and not before.
func TestContentGoesWithItsLastReference(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	for _, bytes := range []int{10, 600000} {
		id := b.putContent(1, bytes)
		b.exec("select parley_store.share_content($1, 'mail', 1, 2)", id)
		equal(b.session, 0, "select parley_store.release_content('mail', array[1])")
		b.requireContents(1)
		equal(b.session, 1, "select parley_store.release_content('mail', array[2])")
		b.requireContents(0)
	}
}

// Two that release the last references of a body at once do not leave it behind, and one that shares it meanwhile keeps it.
func TestContentOfConcurrentHolders(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	id := b.putContent(1, 600000)
	b.exec("select parley_store.share_content($1, 'mail', 1, 2)", id)
	one, two := b.begin(), b.begin()
	one.exec("select parley_store.release_content('mail', array[1])")
	two.exec("select parley_store.release_content('mail', array[2])")
	one.commit()
	two.commit()
	b.exec("select parley_store.collect_content(), parley_store.collect_content()")
	b.requireContents(0)

	for _, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		id = b.putContent(1, 600000)
		releaser, sharer := b.begin(pgx.TxOptions{IsoLevel: isolation}), b.begin()
		equal(releaser, true, "select count(*) > 0 from parley_store.contents")
		sharer.exec("select parley_store.share_content($1, 'mail', 1, 3)", id)
		sharer.commit()
		releaser.exec("select parley_store.release_content('mail', array[1])")
		releaser.commit()
		b.exec("select parley_store.collect_content(), parley_store.collect_content()")
		equal(b.session, 2, "select count(*)::int from parley_store.read_content($1, 'mail', 3)", id)
		b.exec("select parley_store.release_content('mail', array[3])")
	}
	b.fails("PS009", "begin isolation level repeatable read; select parley_store.collect_content()")
}

// What is written in several transactions can be read when it is whole, and goes when nobody finishes it.
func TestContentThatWasBegun(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	begin := func() int64 {
		return value[int64](b.session, "select content_id from parley_store.begin_content('mail', 1, chunk_bytes => 1024)")
	}
	id := begin()
	b.exec("select parley_store.append_content($1, 0, convert_to(repeat('x', 1024), 'UTF8'))", id)
	b.fails("PS003", fmt.Sprintf("select parley_store.open_content(%d, 'mail', 1)", id))
	equal(b.session, 0, "select count(*)::int from parley_store.read_content($1, 'mail', 1)", id)
	b.exec("select parley_store.append_content($1, 1, 'y')", id)
	b.fails("PS004", fmt.Sprintf("select parley_store.finish_content(%d, 1024, sha256('y'))", id))
	b.exec("select parley_store.finish_content($1, 1025, sha256('y'))", id)
	equal(b.session, 2, "select count(*)::int from parley_store.read_content($1, 'mail', 1)", id)
	b.fails("PS003", fmt.Sprintf("select parley_store.append_content(%d, 2, 'z')", id))
	b.fails("PS003", fmt.Sprintf("select parley_store.finish_content(%d, 1025, sha256('y'))", id))

	gap := begin()
	b.exec("select parley_store.append_content($1, 1, 'y')", gap)
	b.fails("PS004", fmt.Sprintf("select parley_store.finish_content(%d, 1, sha256('y'))", gap))
	b.exec("select parley_store.collect_content()")
	b.requireContents(2)
	b.exec("update parley_store._p_content set begun_until = clock_timestamp() - interval '1 second' where begun_until is not null")
	b.exec("select parley_store.collect_content()")
	b.requireContents(1)
	b.fails("PS003", fmt.Sprintf("select parley_store.append_content(%d, 0, 'y')", gap))
}

// A generation is left when it is old, emptied of what stays, and truncated; whoever still writes into it loses nothing.
func TestGenerationsOfContent(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	const collect = "select parley_store.collect_content(1000, '0 seconds', $1)"
	const chunks = "select count(*)::int from parley_store._p_content_chunk"
	stays, goes := b.putContent(1, 600000), b.putContent(2, 600000)
	writer := b.begin()
	late := writer.putContent(3, 600000)
	b.exec(collect, "1 hour")
	equal(b.session, int16(2), "select parley_store._p_current_slot()")
	equal(b.session, 1, "select parley_store.release_content('mail', array[2])")
	_ = goes
	equal(b.session, 4, chunks)
	b.exec(collect, "0 seconds")
	equal(b.session, 2, longLived)
	writer.commit()
	equal(b.session, false, "select parley_store._p_truncate_generation(slot) from parley_store._p_content where content_id = $1", late)
	for range 12 {
		b.exec(collect, "0 seconds")
	}
	equal(b.session, 4, longLived)
	equal(b.session, 4, chunks)
	for holder, id := range map[int]int64{1: stays, 3: late} {
		equal(b.session, 2, "select count(*)::int from parley_store.read_content($1, 'mail', $2)", id, holder)
	}
	b.exec("select parley_store.release_content('mail', array[1, 3])")
	equal(b.session, 0, chunks)
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
		b := newStore(t)
		id := b.putContent(1, 600000)
		b.exec("select parley_store.collect_content(1000, '0 seconds')")
		b.putContent(2, 600000)
		reader := b.begin(pgx.TxOptions{IsoLevel: c.isolation})
		read := fmt.Sprintf("select count(*)::int from parley_store.%s(%d, 'mail', 1)", c.reads, id)
		equal(reader, 2, read)
		// Its driver leaves the query open, with its snapshot, until the next statement.
		reader.exec("savepoint read")
		b.exec("select parley_store.release_content('mail', array[1, 2])")
		for range 7 {
			b.exec("select parley_store.collect_content(1000, '0 seconds', '0 seconds')")
		}
		equal(b.session, c.kept, "select string_agg(generation::text, ' ' order by generation) from parley_store.held_generations")
		equal(b.session, c.chunks, "select count(*)::int from parley_store._p_content_chunk")
		equal(b.session, value[int32](reader, "select pg_backend_pid()"), "select min(pid) from parley_store.held_generations")
		if c.isolation == pgx.RepeatableRead {
			equal(reader, 2, read)
		}
		reader.rollback()
		for range 3 {
			b.exec("select parley_store.collect_content(1000, '1 hour', '0 seconds')")
		}
		equal(b.session, 0, "select count(*)::int from parley_store._p_content_chunk")
		equal(b.session, 0, "select count(*)::int from parley_store.held_generations")
	}
}

// A generation that turns out to be in use is let go of at once, and not at the end of the transaction; nothing waits for its TOAST table.
func TestAGenerationThatIsInUseStaysUnlocked(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	user := b.begin()
	for _, use := range []func(){
		func() { b.putContent(1, 600000) },
		func() {
			b.exec("select parley_store.release_content('mail', array[1])")
			user.exec("select count(*) from " + value[string](b.session, "select reltoastrelid::regclass::text from pg_class where oid = 'parley_store._p_content_chunk_1'::regclass"))
		},
	} {
		use()
		tx := b.begin()
		equal(tx, false, "select parley_store._p_truncate_generation(1::smallint)")
		equal(tx, 0, "select count(*)::int from pg_locks where pid = pg_backend_pid() and mode = 'AccessExclusiveLock'")
		tx.rollback()
	}
	user.rollback()
	equal(b.session, true, "select parley_store._p_truncate_generation(1::smallint)")
}
