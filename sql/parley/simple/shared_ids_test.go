package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// collidingKeys gives two keys of the queue jobs whose messages have one endpoint_id, which has 30 bits of a hash.
func collidingKeys(b *sqltest.Broker) (first, second string) {
	b.Helper()
	keys := sqltest.Values[string](b.Session, `
		select unnest(c.keys)
		from (
			select array[min(k.key), max(k.key)] as keys
			from (
				select 'user ' || n as key, parley._p_key_id(q.queue_id, 'user ' || n) as id
				from generate_series(1, 150000) as n
				cross join parley._p_queue as q
				where q.name = 'jobs'
			) as k
			group by k.id
			having count(*) > 1
			limit 1
		) as c`)
	if len(keys) != 2 {
		b.Fatalf("found %d keys that collide", len(keys))
	}
	return keys[0], keys[1]
}

// Two keys that have one endpoint_id take turns as one key does; a claim never has messages of both.
func TestKeysWithOneIDAreNotClaimedTogether(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	first, second := collidingKeys(b)
	b.PutKeyed(first+":1", second+":1", first+":2", second+":2")
	const claimAll = "select string_agg(parley.body_text(c.body), ',' order by c.message_id) from parley.claim('jobs', 10) as c"
	sqltest.Equal(b.Session, first+":1,"+first+":2", claimAll)
	sqltest.Equal(b.Session, true, "select parley.complete('jobs', claim) from parley.delivery_claims limit 1")
	sqltest.Equal(b.Session, second+":1,"+second+":2", claimAll)
}

// Messages, results and unique keys of one of two keys with one endpoint_id are never taken for those of the other.
func TestKeysWithOneIDAreToldApart(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	first, second := collidingKeys(b)
	b.Exec("select parley.keep_finished('jobs', '1 hour')")
	const put = "select (parley.put_unique('jobs', $2, $1, key => $1)).is_duplicate"
	sqltest.Equal(b.Session, false, put, first, "a")
	sqltest.Equal(b.Session, false, put, second, "b")
	sqltest.Equal(b.Session, true, put, second, "b")
	ids := sqltest.Values[int64](b.Session, "select message_id from parley.peek_messages('jobs') order by message_id")
	// Taken in their order, though by one session at a time, each with its own key.
	tx := b.Begin()
	sqltest.Equal(tx, first, "select key from parley.take('jobs')")
	b.RequireTaken(1)
	sqltest.Equal(tx, true, "select parley.done('jobs', $1, '1')", ids[0])
	tx.Commit()
	sqltest.Equal(b.Session, "1", "select string_agg(result::text, ',') from parley.finished_messages")
	sqltest.Equal(b.Session, false, put, first, "a again")
	sqltest.Equal(b.Session, true, put, second, "b")
	sqltest.Equal(b.Session, true, "select parley.cancel('jobs', $1)", ids[1])
	b.RequireTaken(10, "a again")
	// One that is set aside holds up neither.
	b.PutKeyed(first+":bad", second+":good")
	bad := sqltest.Value[int64](b.Session, "select min(message_id) from parley.peek_messages('jobs')")
	sqltest.Equal(b.Session, true, "select parley.fail('jobs', $1)", bad)
	b.RequireTaken(10, second+":good")
}
