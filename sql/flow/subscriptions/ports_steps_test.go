package subscriptions_test

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

func (m *model) changeState(r *rapid.T) {
	name := rapid.SampledFrom(portNames).Draw(r, "port")
	step := rapid.SampledFrom([]string{"start", "start", "stop", "enlist", "unenlist"}).Draw(r, "operation")
	if !m.ports[name].isThere {
		r.Skip("the port is gone")
	}
	m.setState(r, name, step)
}

func (m *model) setState(r *rapid.T, name, step string) {
	p := m.ports[name]
	next := map[string]string{"start": "Started", "stop": "Stopped", "unenlist": "Bound", "enlist": "Stopped"}[step]
	changes := next != p.state && (step != "enlist" || p.state == "Bound")
	if got := value[bool](r, m.DB, "select parley_flow."+step+"($1)", m.name(name)); got != changes {
		r.Fatalf("%s of a port that is %s reports %v", step, p.state, got)
	}
	if changes {
		p.state = next
	}
	if step == "start" {
		m.tryNow(name)
	}
}

func (m *model) changeGroup(r *rapid.T) {
	step := rapid.SampledFrom([]string{"start", "unenlist", "enlist"}).Draw(r, "operation")
	next := map[string]string{"start": "Started", "unenlist": "Bound", "enlist": "Started"}[step]
	if got := value[bool](r, m.DB, "select parley_flow."+step+"($1, 'send port group')", m.name("group")); got != (next != m.groupState) {
		r.Fatalf("%s of a group that is %s reports %v", step, m.groupState, got)
	}
	m.groupState = next
}

func (m *model) changeLocation(r *rapid.T) {
	wanted := rapid.Bool().Draw(r, "is enabled")
	function := map[bool]string{true: "enable", false: "disable"}[wanted]
	if got := value[bool](r, m.DB, "select parley_flow."+function+"($1)", m.name("location")); got != (wanted != m.isEnabled) {
		r.Fatalf("%s reports %v", function, got)
	}
	m.isEnabled = wanted
}

func (m *model) resumeAll(r *rapid.T) {
	if got, want := value[int](r, m.DB, "select parley_flow.resume_suspended(jsonb_build_object('application', $1::text))", m.application), m.resume(); got != want {
		r.Fatalf("%d were resumed, want %d", got, want)
	}
}

func (m *model) terminateAll(r *rapid.T) {
	if got, want := value[int](r, m.DB, "select parley_flow.terminate_suspended(jsonb_build_object('application', $1::text))", m.application), m.terminate(); got != want {
		r.Fatalf("%d were terminated, want %d", got, want)
	}
}

// maintain does what any host does every few seconds.
func (m *model) maintain(r *rapid.T) {
	if got := value[string](r, m.DB, "select coalesce(string_agg(task || ': ' || error, '; '), '') from parley_flow.maintain()"); got != "" {
		r.Fatal(got)
	}
	for _, x := range m.deliveries {
		if x.state == waiting && !m.ports[x.port].isThere {
			x.state = suspended
		}
	}
}

// claimAll has a host claim until it gets nothing more.
func (m *model) claimAll(r *rapid.T, host string) []*modelDelivery {
	if slices.ContainsFunc(m.deliveries, func(x *modelDelivery) bool { return x.isStray && x.state == waiting }) {
		m.maintain(r)
	}
	all := []*modelDelivery{}
	// A claim may give nothing, because it has moved what it claimed to another lane, or the lane waits for a transaction that is open.
	for until, isEmpty := time.Now().Add(parleytest.Patience), false; !isEmpty || (m.misses(host, all) != nil && time.Now().Before(until)); {
		rows, err := m.hosts[host].DB.Query(m.Context(), `
			select lease_id, item_id, message_id, send_port
			from parley_flow._p_claim(host => $1, holder => 'test', lanes => 100, each => 100, lease => '1 hour', timeout => $2) order by n`,
			host, map[bool]int{true: 50}[isEmpty])
		if err != nil {
			r.Fatal(sqltest.Describe(err))
		}
		claimed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
			Lease, Item, Message int64
			Port                 string
		}])
		if err != nil {
			r.Fatal(sqltest.Describe(err))
		}
		isEmpty = len(claimed) == 0
		for _, c := range claimed {
			i := slices.IndexFunc(portNames, func(name string) bool { return m.name(name) == c.Port })
			if i < 0 {
				// It is left from an application whose check has failed.
				m.exec(r, host, "select parley_flow._p_complete(host => $1, leases => $2, items => $3)", []int64{c.Lease}, []int64{c.Item})
				continue
			}
			x := m.find(r, c.Message, portNames[i])
			x.lease, x.item = c.Lease, c.Item
			x.isOfKey = value[bool](r, m.DB, `select l.lane ~ '#[0-9]+#' from parley_store._p_lease as e
				join parley_store._p_lane as l using (lane_id) where e.lease_id = $1`, c.Lease)
			all = append(all, x)
			r.Logf("claimed %d %s for %s lease %d item %d", x.message.id, x.message.key, x.port, x.lease, x.item)
		}
	}
	m.checkClaim(r, host, all)
	for _, x := range all {
		x.state = inHand
	}
	return all
}

// exec calls a function for a host.
func (m *model) exec(r *rapid.T, host, statement string, arguments ...any) {
	if _, err := m.hosts[host].DB.Exec(m.Context(), statement, append([]any{host}, arguments...)...); err != nil {
		r.Fatalf("%s: %s", statement, sqltest.Describe(err))
	}
}

func (m *model) send(r *rapid.T, host string, sent []*modelDelivery) {
	leases, items := []int64{}, []int64{}
	for _, x := range sent {
		leases, items = append(leases, x.lease), append(items, x.item)
		m.complete(x)
	}
	m.exec(r, host, "select parley_flow._p_complete(host => $1, leases => $2, items => $3)", leases, items)
}

// claim has a host claim what there is, and do something with each lease.
func (m *model) claim(r *rapid.T) {
	host := rapid.SampledFrom([]string{"Send", "Other"}).Draw(r, "host")
	leases := [][]*modelDelivery{}
	for _, x := range m.claimAll(r, host) {
		if n := len(leases) - 1; n >= 0 && leases[n][0].lease == x.lease {
			leases[n] = append(leases[n], x)
		} else {
			leases = append(leases, []*modelDelivery{x})
		}
	}
	for _, lease := range leases {
		_, isOrdered := m.keyOf(lease[0])
		switch outcome := rapid.SampledFrom([]string{"send", "send", "retry", "suspend", "release", "die", "keep"}).Draw(r, "outcome"); {
		case outcome == "retry" || outcome == "suspend":
			m.failOne(r, host, lease[0], outcome)
			m.send(r, host, slices.DeleteFunc(lease, func(x *modelDelivery) bool { return x.state != inHand }))
		case outcome == "release":
			m.exec(r, host, "select parley_flow._p_release(host => $1, lease_id => $2)", lease[0].lease)
			m.giveBack(lease)
		case outcome == "die":
			if _, err := m.DB.Exec(m.Context(), "update parley_store._p_lease set until = clock_timestamp() - interval '1 s' where lease_id = $1", lease[0].lease); err != nil {
				r.Fatal(err)
			}
			m.maintain(r)
			if _, err := m.DB.Exec(m.Context(), "delete from parley_flow._p_suspect"); err != nil {
				r.Fatal(err)
			}
			m.giveBack(lease)
		case outcome == "keep" && !isOrdered:
		default:
			m.send(r, host, lease)
		}
	}
}

func (m *model) giveBack(lease []*modelDelivery) {
	for _, x := range lease {
		x.state = waiting
	}
}

// failOne says that a message could not be sent.
func (m *model) failOne(r *rapid.T, host string, x *modelDelivery, function string) {
	rows, err := m.hosts[host].DB.Query(m.Context(), `
		select item_id, outcome from parley_flow._p_`+function+`(host => $1, lease_id => $2, items => array[$3::bigint], code => 'send.transport', error => 'away')`,
		host, x.lease, x.item)
	if err != nil {
		r.Fatal(sqltest.Describe(err))
	}
	outcomes := map[int64]string{}
	var item int64
	var outcome string
	if _, err := pgx.ForEachRow(rows, []any{&item, &outcome}, func() error {
		outcomes[item] = outcome
		return nil
	}); err != nil {
		r.Fatal(sqltest.Describe(err))
	}
	r.Logf("%s of %d for %s: %v", function, x.message.id, x.port, outcomes)
	m.fail(r, x, function == "retry", outcomes)
}

// finish ends what hosts have kept in their hands, whatever has become of the port meanwhile.
func (m *model) finish(r *rapid.T) {
	for _, x := range m.deliveries {
		if x.state != inHand {
			continue
		}
		host := m.ports[x.port].host
		if rapid.Bool().Draw(r, "is sent") {
			m.send(r, host, []*modelDelivery{x})
		} else {
			m.failOne(r, host, x, "retry")
		}
	}
}

// drain ends everything: each message has to have gone where it had to, and nothing may be left.
func (m *model) drain(r *rapid.T) {
	for len(m.transactions) > 0 {
		m.commit(r, m.transactions[0], 0)
	}
	m.finish(r)
	for _, p := range m.ports {
		if !p.isThere {
			*p = modelPort{isThere: true, state: "Started", host: "Send", onFailed: "wait", holds: map[string]*hold{}}
		}
	}
	m.apply(r, false)
	for range 3 {
		for _, name := range portNames {
			m.setState(r, name, "start")
		}
		m.resumeAll(r)
		for host := range m.hosts {
			if sent := m.claimAll(r, host); len(sent) > 0 {
				m.send(r, host, sent)
			}
		}
	}
	m.terminateAll(r)
	ids := []int64{}
	for _, message := range m.messages {
		ids = append(ids, message.id)
	}
	for _, x := range m.deliveries {
		if x.state != over {
			r.Fatalf("message %d is still %s for port %s", x.message.id, x.state, x.port)
		}
	}
	if left := value[[]int64](r, m.DB, "select coalesce(array_agg(message_id), '{}') from parley_flow._p_message where message_id = any ($1)", ids); len(left) > 0 {
		r.Fatalf("messages %v are left", left)
	}
	if left := value[int](r, m.DB, "select count(*)::integer from parley_flow._p_held_key"); left > 0 {
		r.Fatalf("%d keys are held of which nothing is left", left)
	}
}
