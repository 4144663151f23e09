package activation_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestViewsAndDiagnosisNameWhoDelivers(t *testing.T) {
	t.Parallel()
	b, first := newClaimed(t)
	group := b.GroupOf(b.FarHandle(first[0]))
	b.Exec("update parley._p_delivery_claim set claimed_at = claimed_at - interval '1 hour'")
	sqltest.Equal(b.Session, group+" t t", `
		select format('%s %s %s', conversation_group_id, claimed_by ~ 'role ', claimed_at < now() - interval '50 minutes')
		from parley.delivery_claims where queue_name = 'Answering' and message_id is null`)
	sqltest.Equal(b.Session, "t t t", `
		select format('%s %s %s', bool_and(is_locked), bool_and(claimed_by ~ 'role '), count(*) = 2)
		from parley.conversation_activity() where claimed_at is not null`)
	sqltest.Equal(b.Session, 1, "select locked_groups from parley.queue_activity() where queue_name = 'Answering'")
	f := b.RequireFinding(sqltest.Runtime, "group-held")
	if f.ObjectName != group || !f.HasSince || !strings.Contains(f.Cause, "role ") {
		t.Errorf("found %+v", f)
	}
	sqltest.Equal(b.Session, true, "select exists (select from parley.explain_conversation($1) where answer ~ 'on its way')", first[0])
	b.Exec(f.Cure)
	b.RequireNoFinding(sqltest.Runtime, "group-held")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.delivery_claims")
	outsider := b.As(b.Role("outsider"))
	requireClaimed(b.Session, ours, "a")
	sqltest.Equal(outsider, 0, "select count(*) from parley.delivery_claims")
	for _, statement := range []string{
		"select parley.renew_delivery('Answering', '" + ours + "', 1000)", "select parley.release_delivery('Answering', '" + ours + "')",
		"select parley.record_delivery('Answering', '" + ours + "', '" + b.FarHandle(first[0]) + "')",
	} {
		outsider.Refuses(229, statement)
	}
}

// Activation starts no reader for them.
func TestClaimedGroupsAndMessagesAreNoWorkForOtherReaders(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	b.Put("x")
	const work = `
		select coalesce(string_agg(q.name, ' ' order by q.name), '')
		from parley._p_receivable((select array_agg(queue_id) from parley._p_queue), (select array_agg(10) from parley._p_queue), 100) as r
		join parley._p_queue as q using (queue_id) where r.groups > 0`
	sqltest.Equal(b.Session, "Answering jobs", work)
	requireClaimed(b.Session, ours, "x")
	b.Exec("select parley.next_message_delivery('jobs', claim => $1)", ours)
	sqltest.Equal(b.Session, "", work)
	runOut(b)
	sqltest.Equal(b.Session, "Answering jobs", work)
}
