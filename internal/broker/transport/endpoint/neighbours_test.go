package endpoint_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	"github.com/parley-broker/parley/internal/logtest"
)

// converse has a dialog carry messages both ways, and both sides end it.
func converse(a, b *base, log *logtest.Log) {
	there := a.begin("b")
	a.send(there, 1, 20)
	b.awaitGot(log, 20)
	back := value[string](b, "select conversation_handle::text from parley.conversation_endpoints where is_initiator = 0")
	b.send(back, 1, 20)
	a.readOutbound()
	a.awaitGot(log, 20)
	a.exec("select parley.end_conversation($1::uuid)", there)
	b.await(log, "select app.read() >= 0 and exists (select from app.got where type like '%EndDialog')")
	b.exec("select parley.end_conversation($1::uuid)", back)
	for _, side := range []*base{a, b} {
		side.awaitOver(log)
	}
}

func TestTwoDatabasesOfOneDaemonConverse(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	converse(a, b, serve(t, "one", endpoint.Config{}, a, b).log)
}
