package subscriptions_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

// portNames are the ports of each application; the last two are of its group to begin with.
var portNames = []string{"first", "second", "third"}

// applications numbers them.
var applications atomic.Int64

// model is one application with its ports, what was published to it, and what has to become of that.
type model struct {
	definitions
	sqltest.Flow
	hosts        map[string]sqltest.Session
	application  string
	step         int
	isEnabled    bool
	messages     []*modelMessage
	deliveries   []*modelDelivery
	transactions []*transaction
	sessions     []sqltest.Session // in which transactions are opened
}

// Operators give ports, groups and locations any states and definitions while messages come, also from transactions that see
// definitions of before. A message reaches each port that matched it then, once, in its order, and while the port is started;
// where none matched it is suspended; nothing is lost.
func TestPortsModel(t *testing.T) {
	t.Parallel()
	// A check takes a second; an engineer who wants more gives -rapid.checks.
	if given := flag.Lookup("rapid.checks"); given.Value.String() == given.DefValue && os.Getenv("PARLEY_TEST_LONG") == "" {
		if err := given.Value.Set("12"); err != nil {
			t.Fatal(err)
		}
	}
	f := sqltest.NewFlow(t)
	role := f.Role("other")
	f.Exec(`select parley_flow.apply(jsonb_build_object(
		'host', jsonb_build_object('Other', jsonb_build_object('role', $1::text)),
		'retry policy', '{"late": {"count": 1, "interval": "1 hour", "jitter": 0}}'::jsonb
	))`, role)
	hosts := map[string]sqltest.Session{"Send": f.Tx, "Other": f.As(role)}
	sessions := []sqltest.Session{f.Connection(), f.Connection()}
	rapid.Check(t, func(r *rapid.T) {
		m := &model{Flow: f, hosts: hosts, application: fmt.Sprintf("app%d", applications.Add(1)), isEnabled: true, sessions: sessions}
		m.ports = map[string]*modelPort{}
		for _, name := range portNames {
			m.ports[name] = &modelPort{host: "Send", state: "Started", isThere: true}
			m.draw(r, name)
		}
		m.members, m.groupState = []string{"second", "third"}, "Started"
		m.apply(r, false)
		defer m.rollBackAll()
		r.Repeat(map[string]func(*rapid.T){
			"publish": m.publish, "publish more": m.publish, "receive": m.receive, "begin": m.begin, "publish in": m.publishIn,
			"publish in more": m.publishIn, "end": m.end, "state": m.changeState, "state again": m.changeState, "group": m.changeGroup,
			"location": m.changeLocation, "define": m.define, "drop": m.drop, "claim": m.claim, "claim again": m.claim,
			"finish": m.finish, "resume": m.resumeAll, "terminate": m.terminateAll,
			"": func(r *rapid.T) {
				m.step++
				if got := value[int](r, m.DB, "select count(*)::integer from parley_flow.suspended where application = $1", m.application); got != m.suspensions() {
					r.Fatalf("%d are suspended, want %d", got, m.suspensions())
				}
			},
		})
		m.drain(r)
	})
}

func value[T any](r *rapid.T, db sqltest.Querier, query string, arguments ...any) (v T) {
	if err := db.QueryRow(context.Background(), query, arguments...).Scan(&v); err != nil {
		r.Fatalf("%s: %s", query, sqltest.Describe(err))
	}
	return v
}

func (m *model) name(port string) string { return m.application + " " + port }

// draw gives a port a definition.
func (m *model) draw(r *rapid.T, name string) {
	p := m.ports[name]
	p.filter = rapid.IntRange(0, len(filters)-1).Draw(r, "filter")
	p.onFailed = rapid.SampledFrom([]string{"wait", "park", "stop"}).Draw(r, "on failure")
	if order := rapid.SampledFrom([]string{"", "whole", "keyed"}).Draw(r, "order"); order != p.order || p.holds == nil {
		p.order, p.holds = order, map[string]*hold{}
	}
}

// document gives the definitions of the application, without states.
func (m *model) document() string {
	ports, members := map[string]any{}, []string{}
	for _, name := range portNames {
		p := m.ports[name]
		if !p.isThere {
			continue
		}
		settings := map[string]any{
			"application": m.application, "host": p.host, "adapter": "TCP", "address": "x:1", "retry_policy": "late", "on_failure": p.onFailed,
			"ordered": p.order != "", "filter": json.RawMessage(m.text(filters[p.filter])),
		}
		if p.order == "keyed" {
			settings["order_key"] = "urn:p#Key"
		}
		ports[m.name(name)] = settings
		if slices.Contains(m.members, name) {
			members = append(members, m.name(name))
		}
	}
	document, _ := json.Marshal(map[string]any{
		"application": map[string]any{m.application: map[string]any{}},
		"send port":   ports,
		"send port group": map[string]any{m.name("group"): map[string]any{
			"application": m.application, "ports": members, "filter": json.RawMessage(m.text(filters[m.groupFilter])),
		}},
		"receive port": map[string]any{m.name("in"): map[string]any{"application": m.application}},
		"receive location": map[string]any{m.name("location"): map[string]any{
			"receive_port": m.name("in"), "host": "Receive", "adapter": "FILE", "address": "/" + m.application,
		}},
	})
	return string(document)
}

// apply makes the database know the definitions; false when it refuses them.
func (m *model) apply(r *rapid.T, mayBeRefused bool) bool {
	_, err := m.DB.Exec(m.Context(), "select parley_flow.apply($1::jsonb, prune => true)", m.document())
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == "PF003" && mayBeRefused {
		return false
	} else if err != nil {
		r.Fatal(sqltest.Describe(err))
	}
	m.version++
	return true
}

// change makes definitions others, unless messages that wait for a port forbid it: for one that gets another host or order, or goes.
func (m *model) change(r *rapid.T, name string, changes func(p *modelPort)) {
	before := m.clone()
	waits, strays := m.waitsFor(name), m.mayStray(name)
	changes(m.ports[name])
	p, old := m.ports[name], before.ports[name]
	moves := old.isThere && (!p.isThere || p.host != old.host || p.order != old.order)
	if !m.apply(r, moves && (waits || strays)) {
		m.definitions = before
	} else if moves && waits && !strays {
		r.Fatalf("port %s changed from %+v to %+v while messages wait for it", name, old, p)
	}
}

func (m *model) define(r *rapid.T) {
	m.change(r, rapid.SampledFrom(portNames).Draw(r, "port"), func(p *modelPort) {
		if !p.isThere {
			*p = modelPort{isThere: true, state: "Started"}
		}
		p.host = rapid.SampledFrom([]string{"Send", "Other"}).Draw(r, "host")
		m.groupFilter = rapid.IntRange(0, len(filters)-1).Draw(r, "filter of group")
		m.members = slices.DeleteFunc(slices.Clone(portNames), func(string) bool { return rapid.Bool().Draw(r, "is no member") })
		for name, other := range m.ports {
			if other == p {
				m.draw(r, name)
			}
		}
	})
}

func (m *model) drop(r *rapid.T) {
	m.change(r, rapid.SampledFrom(portNames).Draw(r, "port"), func(p *modelPort) { p.isThere = false })
}

// publishing calls the function of applications, and gives the number of the message.
const publishing = `select parley_flow.publish('x', jsonb_build_object('urn:p#Key', $1::text), $2, receive_port => $3)`

func (m *model) drawMessage(r *rapid.T) *modelMessage {
	return &modelMessage{
		kind: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "type"), key: rapid.SampledFrom([]string{"one", "two"}).Draw(r, "key"),
	}
}

func (m *model) publish(r *rapid.T) {
	message := m.drawMessage(r)
	message.id = value[int64](r, m.DB, publishing, message.key, m.application+":"+message.kind, m.name("in"))
	m.deliver(message, m.route(message))
}

// receive has the location take a message in, which one that is disabled refuses.
func (m *model) receive(r *rapid.T) {
	message := m.drawMessage(r)
	err := m.Rx.DB.QueryRow(m.Context(), `
		select message_id from parley_flow._p_receive(host => 'Receive', location => $1, bodies => array['x'::bytea],
			promoted => array[jsonb_build_object('urn:p#Key', $2::text)], message_types => array[$3])`,
		m.name("location"), message.key, m.application+":"+message.kind).Scan(&message.id)
	refusal, isRefused := errors.AsType[*pgconn.PgError](err)
	switch {
	case err != nil && (!isRefused || refusal.Code != "PF015" || m.isEnabled):
		r.Fatalf("the location took nothing: %s", sqltest.Describe(err))
	case err == nil && !m.isEnabled:
		r.Fatal("a location took a message that is disabled")
	case err == nil:
		m.deliver(message, m.route(message))
	}
}

// A transaction publishes, while definitions change.
type transaction struct {
	pgx.Tx
	session  sqltest.Session
	snapshot *definitions // as it sees them for good, where it does
	messages []published
	wrote    int // the step in which it wrote first: its place in an order is that of then
}

// published is a message of a transaction that is open: the ports that it matched, in which version of the definitions.
type published struct {
	*modelMessage
	ports   []string
	version int
}

func (m *model) begin(r *rapid.T) {
	free := slices.IndexFunc(m.sessions, func(s sqltest.Session) bool {
		return !slices.ContainsFunc(m.transactions, func(o *transaction) bool { return o.session.DB == s.DB })
	})
	if free < 0 {
		r.Skip("all transactions are open")
	}
	t := &transaction{session: m.sessions[free], wrote: math.MaxInt}
	isOld := rapid.Bool().Draw(r, "has a snapshot")
	statement := "begin; select from parley_flow._p_configuration"
	if isOld {
		statement = "begin isolation level repeatable read; select from parley_flow._p_configuration"
		seen := m.clone()
		t.snapshot = &seen
	}
	if _, err := t.session.DB.Exec(m.Context(), statement); err != nil {
		r.Fatal(err)
	}
	m.transactions = append(m.transactions, t)
}

func (m *model) drawTransaction(r *rapid.T) (*transaction, int) {
	if len(m.transactions) == 0 {
		r.Skip("no transaction is open")
	}
	i := rapid.IntRange(0, len(m.transactions)-1).Draw(r, "transaction")
	return m.transactions[i], i
}

func (m *model) publishIn(r *rapid.T) {
	t, i := m.drawTransaction(r)
	message := m.drawMessage(r)
	seen := &m.definitions
	if t.snapshot != nil {
		seen = t.snapshot
	}
	t.wrote = min(t.wrote, m.step)
	err := t.session.DB.QueryRow(m.Context(), publishing, message.key, m.application+":"+message.kind, m.name("in")).Scan(&message.id)
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == "40001" && t.snapshot != nil {
		// Its snapshot is too old for what has changed since: an application begins it anew.
		m.rollBack(i)
		return
	} else if err != nil {
		r.Fatal(sqltest.Describe(err))
	}
	t.messages = append(t.messages, published{message, seen.route(message), seen.version})
}

func (m *model) rollBack(i int) {
	_, _ = m.transactions[i].session.DB.Exec(context.Background(), "rollback")
	m.transactions = slices.Delete(m.transactions, i, i+1)
}

func (m *model) rollBackAll() {
	for len(m.transactions) > 0 {
		m.rollBack(0)
	}
}

func (m *model) end(r *rapid.T) {
	t, i := m.drawTransaction(r)
	if rapid.IntRange(0, 3).Draw(r, "of four") == 0 {
		m.rollBack(i)
		return
	}
	m.commit(r, t, i)
}

func (m *model) commit(r *rapid.T, t *transaction, i int) {
	if _, err := t.session.DB.Exec(m.Context(), "commit"); err != nil {
		r.Fatal(err)
	}
	m.transactions = slices.Delete(m.transactions, i, i+1)
	for _, p := range t.messages {
		m.deliver(p.modelMessage, p.ports)
		for _, x := range p.deliveries {
			x.began, x.isStray = t.wrote, p.version != m.version
		}
	}
}
