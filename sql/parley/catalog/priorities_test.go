package catalog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The ranks of spec 2.9, from the best match to the worst: contract, local service, remote service.
var ranks = [][3]bool{
	{true, true, true},
	{true, true, false},
	{true, false, true},
	{true, false, false},
	{false, true, true},
	{false, true, false},
	{false, false, true},
	{false, false, false},
}

func createPriority(s sqltest.Session, name string, rank [3]bool, local, remote string, level int) {
	s.Helper()
	given := func(i int, name string) string {
		if rank[i] {
			return name
		}
		return "ANY"
	}
	s.Exec("select parley.create_broker_priority($1, $2, $3, $4, $5)",
		name, given(0, "//test/Work"), given(1, local), given(2, remote), level)
}

func TestBestMatchingPriorityWinsInEightRanks(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	// The worst first, so that each new one is better than all before.
	for i, rank := range slices.Backward(ranks) {
		createPriority(b.Session, fmt.Sprint("initiator ", i), rank, "//test/Asker", "//test/Answerer", i+1)
		sqltest.Equal(b.Session, i+1, "select priority from parley.conversation_endpoints where conversation_handle = $1", b.Dialog())
	}
	// And the best first, so that none of those after changes anything.
	b.Exec("select parley.drop_broker_priority(name) from parley.conversation_priorities")
	for i, rank := range ranks {
		createPriority(b.Session, fmt.Sprint("initiator ", i), rank, "//test/Asker", "//test/Answerer", i+1)
		sqltest.Equal(b.Session, 1, "select priority from parley.conversation_endpoints where conversation_handle = $1", b.Dialog())
	}
}

// For the target's endpoint "local" is the target service (spec 2.9).
func TestEachSideHasThePriorityOfItsOwnView(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_broker_priority('asker', local_service_name => '//test/Asker', priority_level => 8)")
	b.Exec("select parley.create_broker_priority('answerer', local_service_name => '//test/Answerer', remote_service_name => '//test/Asker', priority_level => 2)")
	initiator, target := b.Conversation()
	for handle, want := range map[string]int{initiator: 8, target: 2} {
		sqltest.Equal(b.Session, want, "select priority from parley.conversation_endpoints where conversation_handle = $1", handle)
	}
	b.Send(initiator, sqltest.Request, "down")
	b.Send(target, sqltest.Reply, "up")
	if got := b.Receive("Answering"); len(got) != 1 || got[0].Priority != 2 {
		t.Errorf("the target received %v", got)
	}
	if got := b.Receive("Asking"); len(got) != 1 || got[0].Priority != 8 {
		t.Errorf("the initiator received %v", got)
	}
}

func TestPriorityIsFiveWhenNoneMatches(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_broker_priority('other', 'DEFAULT', priority_level => 9)")
	b.Exec("select parley.create_broker_priority('remote', remote_service_name => '//TEST/Answerer', priority_level => 9)")
	sqltest.Equal(b.Session, 5, "select priority from parley.conversation_endpoints where conversation_handle = $1", b.Dialog())
}

func TestRemoteServiceOfPriorityNeedNotExist(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_broker_priority('remote', remote_service_name => '//far/away', priority_level => 9)")
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//far/away', allow_unknown_target => true)")
	sqltest.Equal(b.Session, 9, "select priority from parley.conversation_endpoints where conversation_handle = $1", handle)
}

func TestPriorityIsFixedWhenTheEndpointIsCreated(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	before := b.Dialog()
	b.Exec("select parley.create_broker_priority('p', priority_level => 10)")
	sqltest.Equal(b.Session, 5, "select priority from parley.conversation_endpoints where conversation_handle = $1", before)
	after := b.Dialog()
	b.Exec("select parley.alter_broker_priority('p', priority_level => 1)")
	sqltest.Equal(b.Session, 10, "select priority from parley.conversation_endpoints where conversation_handle = $1", after)
	b.Exec("select parley.drop_broker_priority('p')")
	sqltest.Equal(b.Session, 10, "select priority from parley.conversation_endpoints where conversation_handle = $1", after)
	// The target's endpoint is created by the first message.
	b.Send(after, sqltest.Request, "x")
	sqltest.Equal(b.Session, 5, "select priority from parley.conversation_endpoints where conversation_handle = $1", b.FarHandle(after))
}

func TestAlterBrokerPriorityChangesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const show = `
		select format('%s %s %s %s', coalesce(c.name, 'ANY'), coalesce(s.name, 'ANY'), coalesce(p.remote_service_name, 'ANY'), p.priority)
		from parley.conversation_priorities as p
		left join parley.service_contracts as c using (service_contract_id)
		left join parley.services as s on s.service_id = p.local_service_id`
	b.Exec("select parley.create_broker_priority('p')")
	sqltest.Equal(b.Session, "ANY ANY ANY 5", show)
	for _, step := range [][2]string{
		{"contract_name => '//test/Work'", "//test/Work ANY ANY 5"},
		{"local_service_name => '//test/Asker'", "//test/Work //test/Asker ANY 5"},
		{"remote_service_name => '//far'", "//test/Work //test/Asker //far 5"},
		{"priority_level => 1", "//test/Work //test/Asker //far 1"},
		{"contract_name => 'any', local_service_name => 'ANY'", "ANY ANY //far 1"},
		{"remote_service_name => 'Any', priority_level => 10", "ANY ANY ANY 10"},
	} {
		b.Exec("select parley.alter_broker_priority('p', " + step[0] + ")")
		sqltest.Equal(b.Session, step[1], show)
	}
}

func TestContractNamedByAPriorityCannotBeDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_contract('//c', array['//test/Note'])")
	b.Exec("select parley.create_broker_priority('p', '//c')")
	b.Refuses(3716, "select parley.drop_contract('//c')")
	b.Exec("select parley.drop_broker_priority('p')")
	b.Exec("select parley.drop_contract('//c')")
}

// With HONOR_BROKER_PRIORITY on, what leaves the database is taken by priority, and one time in eight the other way round, so that low
// priorities get out under any load; with it off priorities are no matter (spec 6.11).
func TestHonoredPrioritiesOrderWhatLeavesTheDatabase(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley._p_find_destination('tcp://far:4022', 10), parley._p_find_destination('tcp://far:4022', 2)")
	orders := func() map[string]int {
		t.Helper()
		found := map[string]int{}
		for _, order := range sqltest.Values[string](b.Session, `
			select (
				select string_agg(array(select 11 - l.lane % 16 from unnest(t.lanes) as l (lane) order by l.lane)::text, ' ' order by t.ordinality)
				from parley._p_lanes_to_take(d) with ordinality as t (lanes, ordinality)
				where n > 0
			)
			from parley._p_destination as d, generate_series(1, 400) as n`) {
			found[order]++
		}
		return found
	}
	if got := orders(); len(got) != 1 || got["{10,5,2}"] != 400 {
		t.Errorf("with the option off lanes are taken as %v", got)
	}
	b.Exec("select parley.honor_broker_priority(true)")
	if got := orders(); len(got) != 2 || got["{10} {5} {2}"] < 250 || got["{2} {5} {10}"] == 0 {
		t.Errorf("with the option on lanes are taken as %v", got)
	}
	b.Exec("select parley.honor_broker_priority(false)")
	if got := orders(); got["{10,5,2}"] != 400 {
		t.Errorf("switched off again, lanes are taken as %v", got)
	}
}
