package sqltest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Flow is a database in which orders come by a receive location and go to send ports, and sessions of the roles of its hosts.
type Flow struct {
	*Broker
	Rx, Tx Session // of hosts Receive and Send
}

// flowDefinitions are those of most tests of the integration engine; $1 and $2 are the roles of the hosts.
const flowDefinitions = `{
	"application": {"Orders": {"description": "Orders of shops"}},
	"host": {"Receive": {"role": "$1"}, "Send": {"role": "$2"}},
	"property schema": {"urn:p": {"application": "Orders", "properties": {
		"Po": {"type": "text", "tracked": true}, "Amount": {"type": "number"}, "Card": {"sensitive": true}, "Flags": {"type": "integer"},
		"Due": {"type": "timestamp"}, "Key": {}
	}}},
	"message type": {"urn:s#Order": {"application": "Orders", "promotions": {"urn:p#Po": "/*[local-name()='Order']/*[local-name()='Po']"}}},
	"retry policy": {"twice": {"count": 2, "interval": "1 second", "jitter": 0}, "never": {"count": 0}},
	"receive port": {"In": {"application": "Orders"}, "Routing in": {"application": "Orders", "failed_message_routing": true}},
	"receive location": {
		"Folder": {"receive_port": "In", "host": "Receive", "adapter": "FILE", "address": "/in/*.xml", "pipeline": "XMLReceive"},
		"Routing folder": {"receive_port": "Routing in", "host": "Receive", "adapter": "FILE", "address": "/routing/*.xml"}
	},
	"send port": {
		"ERP": {"application": "Orders", "host": "Send", "adapter": "TCP", "address": "erp:9000", "retry_policy": "twice",
			"filter": [[{"property": "MessageType", "operator": "=", "value": "urn:s#Order"}]]},
		"Big": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/big",
			"filter": [[{"property": "MessageType", "operator": "=", "value": "urn:s#Order"},
				{"property": "urn:p#Amount", "operator": ">=", "value": 1000}]]}
	}
}`

// NewFlow gives a test a database with flowDefinitions.
func NewFlow(t *testing.T) Flow {
	t.Helper()
	b := NewBroker(t)
	rx, tx := b.Role("receive"), b.Role("send")
	f := Flow{Broker: b}
	b.Exec("select parley_flow.apply($1::jsonb)", strings.NewReplacer("$1", rx, "$2", tx).Replace(flowDefinitions))
	f.Rx, f.Tx = b.As(rx), b.As(tx)
	return f
}

// SendPort defines a send port that gets messages of a type, with further settings.
func (f Flow) SendPort(name, messageType, settings string) {
	f.Helper()
	f.Exec(`select parley_flow.apply(jsonb_build_object('send port', jsonb_build_object($1::text, jsonb_build_object(
		'application', 'Orders', 'host', 'Send', 'adapter', 'TCP', 'address', 'x:1',
		'filter', jsonb_build_array(jsonb_build_array(jsonb_build_object('property', 'MessageType', 'operator', '=', 'value', $2::text)))
	) || $3::jsonb)))`, name, messageType, settings)
}

// PublishFlow publishes a message, and gives its number.
func (s Session) PublishFlow(messageType, properties string) int64 {
	s.Helper()
	return Value[int64](s, "select parley_flow.publish('<x/>', $2::jsonb, $1)", messageType, properties)
}

// ClaimedFlow is a message in the hands of a host.
type ClaimedFlow struct {
	Lease, Item, Message int64
	Port, Key            string
	Attempts             int
}

// ClaimFlow claims what waits for a host.
func (s Session) ClaimFlow(host string) []ClaimedFlow {
	s.Helper()
	return s.ClaimFlowEach(host, 100)
}

// ClaimFlowEach claims what waits for a host, so much of a lane.
func (s Session) ClaimFlowEach(host string, each int) []ClaimedFlow {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), `
		select lease_id, item_id, message_id, coalesce(send_port, '>' || location), coalesce(order_key, ''), attempts
		from parley_flow._p_claim(host => $1, holder => 'test', lanes => 100, each => $2) order by n`, host, each)
	if err != nil {
		s.Fatal(Describe(err))
	}
	defer rows.Close()
	var all []ClaimedFlow
	for rows.Next() {
		var m ClaimedFlow
		if err := rows.Scan(&m.Lease, &m.Item, &m.Message, &m.Port, &m.Key, &m.Attempts); err != nil {
			s.Fatal(err)
		}
		all = append(all, m)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(Describe(err))
	}
	return all
}

// CompleteFlow records that messages were sent.
func (s Session) CompleteFlow(host string, messages ...ClaimedFlow) {
	s.Helper()
	leases, items := []int64{}, []int64{}
	for _, m := range messages {
		leases, items = append(leases, m.Lease), append(items, m.Item)
	}
	s.Exec("select parley_flow._p_complete(host => $1, leases => $2, items => $3)", host, leases, items)
}

// RetryFlow records that a message could not be sent, and gives what became of it.
func (s Session) RetryFlow(host string, m ClaimedFlow) string {
	s.Helper()
	return Value[string](s, `select string_agg(outcome, ' ' order by item_id)
		from parley_flow._p_retry(host => $1, lease_id => $2, items => array[$3::bigint], code => 'send.transport', error => 'it was not there')`,
		host, m.Lease, m.Item)
}

// RefusesFlow requires that a statement fails with an error of the integration engine, well-formed, and gives it.
func (s Session) RefusesFlow(number int, statement string, arguments ...any) pgconn.PgError {
	s.Helper()
	_, err := s.DB.Exec(s.Context(), statement, arguments...)
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		s.Fatalf("%s: got %v, want error %d of the engine", Clip(statement), err, number)
	}
	if refusal.Code != fmt.Sprintf("PF%03d", number) {
		s.Errorf("%s: got %s, want error %d of the engine", Clip(statement), Describe(err), number)
	}
	if refusal.Hint == "" || refusal.Message == "" || strings.Contains(refusal.Message+refusal.Detail+refusal.Hint, "%") {
		s.Errorf("%s: the error does not say what happened and what to do: %s", Clip(statement), Describe(err))
	}
	return *refusal
}
