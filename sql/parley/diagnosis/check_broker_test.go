package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Each damage is found under its number, repaired as stated, and gone then.
func TestCheckBrokerFindsAndRepairsDamage(t *testing.T) {
	t.Parallel()
	const endpoint = " where conversation_handle = (select handle from public.c where name = 'talking')"
	for _, test := range []struct {
		number, repair int
		object, damage string
	}{
		{9677, 9685, "//test/Work", "delete from parley._p_message_type where name = '//test/Note'"},
		{9678, 9684, "//test/Asker", "delete from parley._p_contract where name = '//test/Work'"},
		{9679, 9684, "//test/Answerer", "delete from parley._p_queue where name = 'Answering'"},
		{9706, 9673, "Asking", `select parley.alter_queue('Asking', activation_procedure => 'public.read', execute_as => 'OWNER',
			max_queue_readers => 1, activation => true); drop procedure public.read()`},
		{9713, 9725, "//test/Note", `create function public.good(bytea) returns boolean language sql as 'select true';
			select parley.alter_message_type('//test/Note', 'FUNCTION', 'public.good(bytea)'); drop function public.good(bytea)`},
		{9607, 9606, "Rank", "update parley._p_priority set local_service_id = 1000000"},
		{9608, 9606, "Rank", "update parley._p_priority set service_contract_id = 1000000"},
		{208, 0, "Asking", `drop view parley_queue."Asking"`},
		{208, 0, "Asking", "drop schema parley_queue cascade"},
		{8443, 9686, "", "update parley._p_endpoint set group_id = -1" + endpoint},
		{9681, 9686, "", "update parley._p_endpoint set service_contract_id = 1000000" + endpoint},
		{9682, 9686, "", "update parley._p_endpoint set service_id = 1000000" + endpoint},
		{9710, 9686, "", "update parley._p_endpoint set group_id = (select group_id from parley._p_endpoint where service_name = '//test/Elsewhere')" + endpoint},
		{8445, 9686, "", "update parley._p_endpoint set far_endpoint_id = (select min(endpoint_id) from parley._p_endpoint)" + endpoint},
		{9715, 9686, "", "update parley._p_endpoint set destination_lane = null, state = 'SO'" + endpoint},
		{9683, 9687, "", "update parley._p_conversation_group set service_id = 1000000 where group_id = (select group_id from parley._p_endpoint" + endpoint + ")"},
		{9716, 9687, "", "insert into parley._p_conversation_group (conversation_group_id, service_id) select gen_random_uuid(), service_id from parley._p_service limit 1"},
		{9705, 9672, "Answering", "update parley._p_message set endpoint_id = -1"},
		{9709, 9672, "Answering", "update parley._p_message set message_type_id = 1000000"},
		{8444, 9672, "Asking", "update parley._p_message set lane = (select queue_id * 16 + 6 from parley._p_queue where name = 'Asking')"},
		{9711, 9671, "transmission queue", `insert into parley._p_transmission (endpoint_id, message_type_id, enqueued_at, transmission_status) values (-1, 14, now(), 'x')`},
	} {
		t.Run(test.damage, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(sqltest.Scene)
			if found := b.Check("check_broker()"); len(found) != 0 {
				t.Fatalf("found %+v where nothing is wrong", found)
			}
			// As a restore does that was made without constraints.
			s := b.Connection()
			s.Exec("set session_replication_role = replica")
			s.Exec(test.damage)

			var of *sqltest.Inconsistency
			for _, f := range b.Check("check_broker()") {
				if f.ErrorNumber == test.number && (test.object == "" || strings.Contains(f.ObjectName, test.object)) {
					of = &f
				}
			}
			if of == nil {
				t.Fatalf("not found; found is %+v", b.Check("check_broker()"))
			}
			if of.Repaired || of.ObjectName == "" {
				t.Errorf("found %+v", of)
			}
			if test.repair != 0 && (of.RepairNumber == nil || *of.RepairNumber != test.repair) {
				t.Errorf("the repair is %v, want %d", of.RepairNumber, test.repair)
			}
			for _, f := range b.Check("check_broker(repair => true)") {
				if !f.Repaired {
					t.Errorf("%+v was not repaired", f)
				}
			}
			// A repair that drops a row may leave something else to repair.
			b.Check("check_broker(repair => true)")
			if found := b.Check("check_broker()"); len(found) != 0 {
				t.Errorf("after the repair there is still %+v", found)
			}
		})
	}
}

func TestCheckBrokerReportsTotals(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Conversation()
	for number, total := range map[int]string{
		9605: "0 priorities", 9667: "5 services", 9668: "5 queues", 9669: "2 conversation endpoints", 9670: "0 remote service bindings",
		9674: "2 conversation groups", 9675: "17 message types", 9676: "7 contracts",
	} {
		sqltest.Equal(b.Session, total, "select finding from parley.check_broker() where error_number = $1 and level = 'INFO'", number)
	}
}

func TestRepairInformsTheFarSideOfADamagedConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("update parley._p_endpoint set service_contract_id = 1000000 where conversation_handle = $1", target)
	b.Exec("select parley.check_broker(repair => true)")
	got := b.Messages("select * from parley.receive('Asking', conversation_handle => $1)", initiator)
	if len(got) != 1 || got[0].MessageTypeName != sqltest.ErrorMessage || !strings.Contains(string(got[0].MessageBody), "-8462") {
		t.Errorf("the far side got %v", sqltest.BodiesOf(got))
	}
}

// A side whose service is dropped stays, disconnected, as long as its far side has to receive the Error: that is no damage.
func TestSideOfADroppedServiceThatIsToBeReportedIsNoDamage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	sender := b.Begin()
	sender.Send(initiator, sqltest.Request, "not committed yet")
	b.Exec("select parley.drop_service('//test/Answerer')")
	sqltest.Equal(b.Session, int64(1), "select count(*) from parley._p_endpoint as e where e.state = 'DO' and not exists (select from parley._p_service as s where s.service_id = e.service_id)")
	if found := b.Check("check_broker(repair => true)"); len(found) != 0 {
		t.Errorf("found and repaired %+v", found)
	}
	sender.Commit()
	if got := b.Bodies("Asking"); len(got) != 1 || !strings.Contains(got[0], "-8470") {
		t.Errorf("the initiator received %q, want the Error -8470", got)
	}
}
