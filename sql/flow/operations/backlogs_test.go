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
