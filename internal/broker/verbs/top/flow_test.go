package top_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/verbs/top"
	"github.com/parley-broker/parley/parleytest"
)

// integration has two hosts, one of which is served by a node that is throttled, and two ports: at one a message waits behind an error,
// the other has one suspended. An orchestration has an instance that waits, and one that is suspended.
func integration(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	for _, statement := range []string{
		`
		select parley_flow.apply(jsonb_build_object(
			'application', '{"Shop": {}}'::jsonb,
			'host', jsonb_build_object('Send', jsonb_build_object('role', current_user), 'Spare', jsonb_build_object('role', current_user)),
			'retry policy', '{"never": {"count": 0}}'::jsonb,
			'send port', '{
				"ERP": {"application": "Shop", "host": "Send", "adapter": "TCP", "address": "erp:1", "filter": [[{"property": "MessageType", "operator": "=", "value": "A"}]]},
				"CRM": {"application": "Shop", "host": "Send", "adapter": "TCP", "address": "crm:1", "retry_policy": "never",
					"filter": [[{"property": "MessageType", "operator": "=", "value": "B"}]]}}'::jsonb,
			'orchestration', '{"Ship": {"application": "Shop", "host": "Send", "body": []}}'::jsonb))`,
		`insert into parley_flow._p_instance (send_port_id, version, status)
		select s.send_port_id, 1, i.status from parley_flow._p_send_port as s, (values ('WAITING'), ('SUSPENDED')) as i (status) where s.name = 'Ship'`,
		"select parley_flow.publish('a', message_type => 'A'), parley_flow.publish('b', message_type => 'B')",
		`do $$
		declare
			claimed record;
		begin
			for claimed in select c.lease_id, c.item_id, c.send_port from parley_flow._p_claim('Send', 'n1') as c loop
				perform parley_flow._p_retry(
					'Send', claimed.lease_id, array[claimed.item_id], 'send.transport', 'nobody listens at ' || claimed.send_port,
					is_unreachable => claimed.send_port = 'ERP'
				);
			end loop;
			perform parley_flow._p_report('Send', 'n1', '{"received_per_second": 0, "sent_per_second": 12.5, "in_process": 7,
				"publishing": {"state": 0}, "delivery": {"state": 5, "delay_ms": 100}, "problems": [{"object": "CRM", "cause": "no secret"}]}');
		end $$`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

func TestHostsAndPortsOfIntegrationAreShown(t *testing.T) {
	t.Parallel()
	p := watch(t, integration(t))
	p.press("4")
	p.expect("HOST", "HOST NODE STATE IN/S OUT/S IN PROCESS THROTTLED PROBLEM")
	p.expect("Send", "Send n1 Serving 0 13 7 delivery 5 (100 ms) CRM: no secret")
	p.expect("Spare", "Spare - Never served - - 0 - -")
	p.press("tab")
	p.expect("PORT", "PORT HOST STATE WAITING↓ OLDEST OUT/S SUSPENDED LAST ERROR")
	if line := p.line("ERP"); !strings.HasPrefix(line, "ERP Send Started 1 (1 failing) ") || !strings.HasSuffix(line, " nobody listens at ERP") {
		t.Errorf("ERP: %q", line)
	}
	if line := p.line("CRM"); !strings.HasPrefix(line, "CRM Send Started 0 - ") || !strings.Contains(line, " 1 ") {
		t.Errorf("CRM: %q", line)
	}
	p.press("tab")
	p.expect("ORCHESTRATION", "ORCHESTRATION HOST STATE INSTANCES↓ NEW RETRYING SUSPENDED MESSAGES VERSION")
	p.expect("Ship", "Ship Send Started 2 0 0 1 0 1")
}

func TestHostsAndPortsArePrintedForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	reading, err := top.Read(t.Context(), integration(t))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := top.Compare(nil, reading)
	var text bytes.Buffer
	if err := top.Print(&text, snapshot); err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for got, wanted := range map[string][]string{
		text.String(): {"Hosts\n", "\nSend   n1", "Ports\n", "\nERP   Send", "Orchestrations\n"},
		string(document): {
			`"host":"Send","node":"n1","status":"Serving","received_per_second":0,"sent_per_second":12.5,"in_process":7,`,
			`"delivery":{"state":5,"delay_ms":100},"problem":"CRM: no secret"`, `"host":"Spare","node":null,"status":"Never served","received_per_second":null`,
			`"name":"CRM","application":"Shop","host":"Send","state":"Started","waiting":0,"failing":0,`, `"suspended":1,`,
			`"last_error":"nobody listens at ERP"`, `"name":"Ship","application":"Shop","host":"Send","state":"Started","version":1,`,
		},
	} {
		for _, want := range wanted {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
}

// The screen is read by roles that may use the broker, and nothing of integration.
func TestScreenOutlivesASchemaThatIsNotThere(t *testing.T) {
	t.Parallel()
	pool := shop(t, 1)
	if _, err := pool.Exec(t.Context(), "drop schema parley_flow cascade"); err != nil {
		t.Fatal(err)
	}
	p := watch(t, pool)
	if p.line("shop") == "" || p.line("trying again") != "" {
		t.Errorf("without integration:\n%s", p.screen())
	}
}
