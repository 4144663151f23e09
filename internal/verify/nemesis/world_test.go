//go:build unix

package nemesis_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// world is a cluster: several servers with their databases, a daemon for each server, and a link to each daemon from each other server.
type world struct {
	t       testing.TB
	servers []*server
	daemons []*daemon
	// links[from][to] is the way of the daemon of one server to that of another.
	links   [][]*link
	parties []*party
	trust   *trust
}

// newWorld starts it all; layout names the databases of each server.
func newWorld(t testing.TB, layout [][]string) *world {
	t.Helper()
	program(t)
	w := &world{t: t, servers: make([]*server, len(layout)), trust: newTrust(t)}
	for i, names := range layout {
		for _, name := range names {
			w.parties = append(w.parties, &party{name: name, server: i, at: func() string { return w.servers[i].DSN(name) }})
		}
	}
	var starting sync.WaitGroup
	for i := range layout {
		starting.Go(func() {
			w.servers[i] = newServer(t, fmt.Sprint("server", i+1))
			for _, name := range layout[i] {
				w.servers[i].createDatabase(t, name)
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i := range layout {
		w.daemons = append(w.daemons, w.trust.daemon(t, fmt.Sprint("daemon", i+1), w.dsns(i)...))
	}
	for from := range layout {
		w.links = append(w.links, make([]*link, len(layout)))
		for to := range layout {
			if from != to {
				w.links[from][to] = newLink(t, w.daemons[to].address())
			}
		}
	}
	for _, p := range w.parties {
		w.settle(p)
	}
	return w
}

func (w *world) dsns(server int) (dsns []string) {
	for _, p := range w.parties {
		if p.server == server {
			dsns = append(dsns, p.dsn())
		}
	}
	return dsns
}

// settle creates the services of a party, and the routes to those of all others.
func (w *world) settle(p *party) {
	w.t.Helper()
	conn := connect(w.t, p.dsn())
	defer conn.Close(context.Background())
	p.openServices(w.t, conn)
	for _, other := range w.parties {
		// To those on the same server leads the route that every database has from the beginning, which is LOCAL.
		if other.server != p.server {
			p.route(w.t, other, "tcp://"+w.links[p.server][other.server].address())
		}
	}
	w.trust.settle(w.t, conn, w.daemons[p.server].name)
}

// openServices creates the services of a party; every role may send to them.
func (p *party) openServices(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	for _, service := range []string{"initiator", "target"} {
		must(t, conn, "select parley.create_service($1, $2, '{DEFAULT}')", p.name+"/"+service, service+"_queue")
		must(t, conn, "select parley.grant('SEND', 'service', $1, 'public')", p.name+"/"+service)
	}
}

// route reports where the services of another party are.
func (p *party) route(t testing.TB, other *party, address string) {
	t.Helper()
	conn := connect(t, p.dsn())
	defer conn.Close(context.Background())
	for _, service := range []string{"initiator", "target"} {
		must(t, conn, "select parley.create_route(name => $1, service_name => $1, address => $2)", other.name+"/"+service, address)
	}
}

// heal undoes all faults: servers and daemons run, links are whole.
func (w *world) heal(t testing.TB) {
	t.Helper()
	for _, s := range w.servers {
		s.startAgain(t)
	}
	for _, d := range w.daemons {
		if d.process != nil {
			d.resume()
		}
		if !d.lives() {
			d.kill()
		}
		d.start(t)
	}
	for _, l := range slices.Concat(w.links...) {
		if l != nil {
			l.heal(t)
		}
	}
}
