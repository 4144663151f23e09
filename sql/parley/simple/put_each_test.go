package simple_test

import (
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestEachMessageOfABatchHasItsAnswer(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	const answers = "select string_agg(concat_ws(':', p.is_duplicate, p.message_id, p.delayed_id), ' ' order by p.n) from "
	sqltest.Equal(b.Session, "f:1024 f:2048 t:1024 f:3072", answers+`
		parley.put_each('jobs', array['a', 'b', 'c', 'd'], keys => array['k', null, 'k', null], deduplication_keys => array['x', 'y', 'x', null])
		with ordinality as p (is_duplicate, conversation_handle, message_id, delayed_id, sent_at, n)`)
	sqltest.Equal(b.Session, true, `
		select bool_and(p.is_duplicate = (p.message_id is not null)) and count(p.delayed_id) = 1
		from parley.put_each('jobs', array['e', 'f'], deduplication_keys => array['y', 'z'], deliver_at => now() + interval '1 hour') as p`)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.put_each('jobs', null)")
	sqltest.Equal(b.Session, true, "select parley.cancel('jobs', 2048)")
	b.RequireTaken(10, "a", "d")
}

// Two batches with the same keys in another order wait for one another, and never in a circle.
func TestBatchesUseKeysInOneOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	var all sync.WaitGroup
	for _, keys := range []string{"array['p', 'q', 'r']", "array['r', 'q', 'p']"} {
		all.Go(func() {
			s := b.Unhurried()
			for range 20 {
				s.Exec("select parley.put_each('jobs', array['x', 'y', 'z'], deduplication_keys => " + keys + ")")
				s.Exec("delete from parley._p_deduplication_key")
			}
		})
	}
	all.Wait()
}
