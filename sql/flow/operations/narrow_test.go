package operations_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Narrow questions read few blocks, however many messages there are.
func TestANarrowQuestionReadsNotAllMessages(t *testing.T) {
	t.Parallel()
	const rows = 50_000
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"receive port": {"Rare in": {"application": "Orders"}}}')`)
	message := f.PublishFlow("nobody", "{}")
	f.Exec(`
		insert into parley_flow._p_message (deliveries, size, promoted, receive_port_id, received_at)
		select 1, 10, jsonb_build_object('urn:p#Po', n::text), case when n % $1 = 7 then r.receive_port_id else p.receive_port_id end, clock_timestamp()
		from generate_series(1, $1::integer) as g (n)
		cross join (select receive_port_id from parley_flow._p_receive_port where name = 'In') as p
		cross join (select receive_port_id from parley_flow._p_receive_port where name = 'Rare in') as r`, rows)
	f.Exec(`
		insert into parley_flow._p_suspended (message_id, stage, application, receive_port, location, send_port, code, error, is_resumable, size)
		select m.message_id, 'SEND', case when n % $1 = 7 then 'Rare' else 'Orders' end, case when n % $1 = 8 then 'Rare in' else 'In' end, case when n % $1 = 9 then 'Rare' else 'Folder' end,
			case when n % $1 = 10 then 'Rare' else 'ERP' end, 'x', 'no', true, 10
		from (select message_id, row_number() over (order by message_id) as n from parley_flow._p_message) as m`, rows)
	f.Exec("analyze parley_flow._p_message, parley_flow._p_suspended, parley_flow._p_receive_port")
	role := f.Role("viewer")
	f.Exec("select parley_flow.grant_right('VIEW', $1, application => 'Orders')", role)
	for reader, s := range map[string]sqltest.Session{"an owner": f.Session, "a viewer of the application": f.As(role)} {
		for question, want := range map[string]int{
			fmt.Sprintf("select count(*)::integer from parley_flow.messages where message_id = %d", message+20):                    1,
			"select count(*)::integer from (select from parley_flow.messages limit 50) as m":                                       50,
			"select count(*)::integer from parley_flow.messages_matching(top => 50)":                                               50,
			`select count(*)::integer from parley_flow.messages_matching('{"receive_port": "In"}', top => 50)`:                     50,
			`select count(*)::integer from parley_flow.messages_matching('{"application": "Orders"}', top => 9, before => 40000)`:  9,
			fmt.Sprintf("select count(*)::integer from parley_flow.suspended where suspension_id = %d", 100):                       1,
			fmt.Sprintf("select count(*)::integer from parley_flow.suspended where message_id = %d", message+20):                   1,
			"select count(*)::integer from parley_flow.suspended where send_port = 'Rare'":                                         1,
			"select count(*)::integer from parley_flow.suspended where receive_port = 'Rare in'":                                   1,
			"select count(*)::integer from parley_flow.suspended where location = 'Rare'":                                          1,
			`select count(*)::integer from parley_flow.suspended_matching('{"send_port": "Rare"}')`:                                1,
			`select count(*)::integer from parley_flow.suspended_matching('{"location": "Rare", "stage": "SEND"}')`:                1,
			`select count(*)::integer from parley_flow.suspended_matching('{"application": "Orders"}', top => 50, after => 40000)`: 50,
			`select count(*)::integer from parley_flow.suspended_matching('{"suspensions": [100, 200]}')`:                          2,
		} {
			t.Run(reader+" "+question, func(*testing.T) {
				sqltest.Equal(s, want, question)
				s.RequireFewReads(400, question)
			})
		}
	}
}
