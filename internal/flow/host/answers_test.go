package host_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// The answer of a server that is quick waits for no other one, also where a node has claimed both requests at once.
func TestAnAnswerWaitsForNoSlowerOne(t *testing.T) {
	t.Parallel()
	e, address, _ := newDesk(t, "10 minutes")
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	clerk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == "slow" {
			<-hold
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(clerk.Close)
	t.Cleanup(release) // before it is closed, which waits for what it answers
	e.apply(fmt.Sprintf(`{"send port": {"Clerk": {"application": "Desk", "host": "Send", "adapter": "HTTP", "address": %q, "responds": true,
		"settings": {"timeout": "10 minutes", "connections": 8},
		"filter": [[{"property": "urn:p#Key", "operator": "=", "value": "clerk"}]]}}}`, clerk.URL+"/in"))
	e.Exec("select parley_flow.stop('Clerk')")
	slow, quick := make(chan reply, 1), make(chan reply, 7)
	go func() { slow <- ask(t.Context(), address, "clerk", "slow") }()
	for range cap(quick) {
		go func() { quick <- ask(t.Context(), address, "clerk", "quick") }()
	}
	parleytest.Until(t, "all requests wait for the port", func() bool {
		return sqltest.Value[int](e.Session, "select count(*)::integer from parley_flow._p_message") == cap(quick)+1
	})
	e.Exec("select parley_flow.start('Clerk')")
	for range cap(quick) {
		if got := parleytest.Receive(t, quick, "a quick answer"); got.status != http.StatusOK || got.body != "quick" {
			t.Errorf("a quick request got %+v", got)
		}
	}
	release()
	if got := parleytest.Receive(t, slow, "the slow answer"); got.status != http.StatusOK || got.body != "slow" {
		t.Errorf("the slow request got %+v", got)
	}
	e.untilOver(0)
}
