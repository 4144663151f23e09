package operations_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Messages of a port whose destination is away count for nobody else, up to the limit of the port; it is named from there on.
func TestMessagesOfAPortThatIsAwayCountForItAlone(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("Away", "urn:s#Away", `{"pause_at": 5, "resume_at": 2}`)
	waiting := func() int {
		return sqltest.Value[int](f.Tx, "select value::integer from parley_flow._p_measure() where resource = 'messages waiting'")
	}
	ports := func() string {
		return sqltest.Value[string](f.Session, `select coalesce(string_agg(format('%s %s', s.name, m.is_over), ', '), '')
			from parley_flow._p_measure_ports() as m join parley_flow._p_send_port as s on s.send_port_id = m.send_port`)
	}
	for range 4 {
		f.PublishFlow("urn:s#Away", `{}`)
	}
	f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 1}`)
	if n := waiting(); n != 5 {
		t.Errorf("%d count", n)
	}
	f.Exec("select parley_flow.stop('Away')")
	if n := waiting(); n != 1 || ports() != "Away f" {
		t.Errorf("of a port that is stopped %d count; over are %q", n, ports())
	}
	for range 3 {
		f.PublishFlow("urn:s#Away", `{}`)
	}
	if n := waiting(); n != 3 || ports() != "Away t" {
		t.Errorf("beyond its limit %d count; over are %q", n, ports())
	}
	f.Exec("select parley_flow.start('Away')")
	if n := waiting(); n != 8 {
		t.Errorf("of a port that is started %d count", n)
	}
	for _, m := range f.Tx.ClaimFlow("Send") {
		if m.Port == "Away" {
			f.Tx.Exec(`select parley_flow._p_retry('Send', $1, array[$2::bigint], 'send.unreachable', 'x', is_unreachable => true)`, m.Lease, m.Item)
		}
	}
	if n := waiting(); n != 3 {
		t.Errorf("of a port that is away %d count", n)
	}
	f.As(f.Role("outsider")).RefusesFlow(1, "select parley_flow._p_measure_ports()")
}

// A destination that hangs has no failure yet: its messages count for nobody else either, once nothing has gone for long. A port that is
// slow, and sends, counts as before.
func TestMessagesOfAPortThatHangsCountForItAlone(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("Hangs", "urn:s#Hangs", `{"pause_at": 5, "resume_at": 2}`)
	f.SendPort("Slow", "urn:s#Slow", `{"pause_at": 5, "resume_at": 2}`)
	for range 4 {
		f.PublishFlow("urn:s#Hangs", `{}`)
		f.PublishFlow("urn:s#Slow", `{}`)
	}
	waiting := func() int {
		return sqltest.Value[int](f.Tx, "select value::integer from parley_flow._p_measure() where resource = 'messages waiting'")
	}
	claimed := f.Tx.ClaimFlow("Send")
	if n := waiting(); n != 8 {
		t.Errorf("%d count of what was just claimed", n)
	}
	f.Exec("update parley_store._p_lease set claimed_at = claimed_at - interval '20 seconds'")
	for _, m := range claimed {
		if m.Port == "Slow" {
			f.Tx.CompleteFlow("Send", m)
			break
		}
	}
	if n := waiting(); n != 3 {
		t.Errorf("%d count, of which 3 are of the port that sends", n)
	}
	for range 2 {
		f.PublishFlow("urn:s#Hangs", `{}`)
	}
	if n := waiting(); n != 4 {
		t.Errorf("%d count, of which one is beyond the limit of the port that hangs", n)
	}
	f.Exec("update parley_store._p_lane_change set at = at - interval '40 seconds'")
	f.Exec("select parley_store.fold_lane_counts()")
	if n := waiting(); n != 1 {
		t.Errorf("%d count when the other one hangs too", n)
	}
}
