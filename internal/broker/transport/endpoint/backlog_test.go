package endpoint_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
)

// A lane that is full for long: what was answered is reported all the while, so what is in transit stays a window.
func TestOnlyAWindowOfABacklogIsInTransit(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	first := serve(t, "first", endpoint.Config{}, a, b)
	const conversations, each = 300, 100
	a.exec("create table app.talk (handle uuid)")
	a.exec("insert into app.talk select parley.begin_dialog('source a', 'target b', allow_unknown_target => true) from generate_series(1, $1)", conversations)
	a.exec("select parley.send(k.handle, 'DEFAULT', 'the first') from app.talk as k")
	b.await(first.log, `select count(*) = $1 from parley_queue."inbound"`, conversations)
	first.stop()
	a.exec("select parley.send(k.handle, 'DEFAULT', n::text) from generate_series(1, $1) as n cross join app.talk as k", each)
	second := serve(t, "second", endpoint.Config{}, a, b)
	var most int64
	for deadline := time.Now().Add(patience); value[int64](b, `select count(*) from parley_queue."inbound"`) < conversations*(1+each); {
		most = max(most, value[int64](a, "select count(*) from parley._p_transit"))
		if time.Now().After(deadline) {
			t.Fatalf("not all has arrived\nthe log:\n%s", second.log)
		}
		<-time.After(pollEvery)
	}
	// A window of 8,000 rows, and what has been answered and is about to be reported.
	if most > 16_000 {
		t.Errorf("%d messages were in transit at once", most)
	}
	a.await(second.log, "select not exists (select from parley._p_transit)")
}
