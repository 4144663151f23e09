package rights_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestGrantToPublicIsForEverybody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s := b.As(b.Role("ordinary"))
	for _, public := range []string{"PUBLIC", "public"} {
		s.RequireDenied("select parley.receive('Asking')")
		b.Grant(receiveAsking, public)
		s.RequireAllowed("select parley.receive('Asking')")
		b.Revoke(receiveAsking, public)
	}
	s.RequireDenied("select parley.receive('Asking')")
}

func TestGrantToARoleIsForItsMembers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	group, member, outsider := b.Role("group"), b.Role("member"), b.Role("outsider")
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member))
	b.Grant(receiveAsking, group)
	b.As(member).RequireAllowed("select parley.receive('Asking')")
	b.As(outsider).RequireDenied("select parley.receive('Asking')")
}

func TestRightsAreThoseOfTheRoleThatIsSet(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	group, member := b.Role("group"), b.Role("member")
	b.Exec("alter role " + sqltest.Quote(member) + " noinherit")
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member))
	b.Grant(receiveAsking, group)
	b.Grant(referenceWork, group)
	s := b.As(member)
	s.RequireDenied("select parley.receive('Asking')")
	s.Exec("set role " + sqltest.Quote(group))
	s.RequireAllowed("select parley.receive('Asking')")
	handle := s.Dialog()
	s.Send(handle, sqltest.Request, "x")
	s.Send(handle, sqltest.Request, "x")
	s.Exec("reset role")
	s.Refuses(229, "select parley.send($1::uuid, '//test/Request', 'x')", handle)
	s.Exec("set role " + sqltest.Quote(group))
	s.Send(handle, sqltest.Request, "x")

	// An administrator that sets a role is no administrator any more.
	admin := b.Connection()
	admin.Exec("set role " + sqltest.Quote(b.Role("ordinary")))
	admin.Refuses(229, "select parley.receive('Asking')")
	admin.Refuses(229, "select parley.send($1::uuid, '//test/Request', 'x')", handle)
	admin.Refuses(28006, "select parley.end_conversation($1::uuid, cleanup => true)", handle)
}

// A conversation that has sent before takes a short way: it must not pass by a right that was lost.
func TestLosingTheRightStopsSendsOnOpenConversations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ give, take string }{
		"revoke":            {"select parley.grant('RECEIVE', 'queue', 'Asking', $1)", "select parley.revoke('RECEIVE', 'queue', 'Asking', $1)"},
		"revoke control":    {"select parley.grant('CONTROL', 'queue', 'Asking', $1)", "select parley.revoke('CONTROL', 'queue', 'Asking', $1)"},
		"revoke of public":  {"select parley.grant('RECEIVE', 'queue', 'Asking', 'PUBLIC')", "select parley.revoke('RECEIVE', 'queue', 'Asking', 'PUBLIC')"},
		"leaving the role":  {"grant group_role to member_role; select parley.grant('RECEIVE', 'queue', 'Asking', group_role)", "revoke group_role from member_role"},
		"another owner":     {"select parley.alter_authorization('queue', 'Asking', $1)", "select parley.alter_authorization('queue', 'Asking', current_user)"},
		"leaving the owner": {"grant group_role to member_role; select parley.alter_authorization('queue', 'Asking', group_role)", "revoke group_role from member_role"},
		"service moves": {
			"select parley.grant('RECEIVE', 'queue', 'Asking', $1)",
			"select parley.create_queue('Other'); select parley.alter_service('//test/Asker', 'Other')",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			group, member := b.Role("group"), b.Role("member")
			as := func(statement string) string {
				literal := "'" + member + "'"
				statement = strings.ReplaceAll(statement, ", group_role)", ", '"+group+"')")
				statement = strings.ReplaceAll(statement, "group_role", sqltest.Quote(group))
				return strings.ReplaceAll(strings.ReplaceAll(statement, "member_role", sqltest.Quote(member)), "$1", literal)
			}
			b.Grant(referenceWork, member)
			b.Exec(as(c.give))
			s := b.As(member)
			handle := s.Dialog()
			sends := []string{
				"select parley.send($1::uuid, '//test/Request', 'x')",
				"select parley.send($1::uuid, '//test/Request', 'x'::bytea)",
				"select parley.send_to_all(array[$1::uuid], '//test/Request', 'x')",
				"select parley.send_batch($1::uuid, '//test/Request', array['x'])",
			}
			for _, statement := range sends {
				s.Exec(statement, handle)
			}
			b.Exec(as(c.take))
			for _, statement := range sends {
				s.Refuses(229, statement, handle)
			}
		})
	}
}

func TestOneRoleDoesNotSendByTheRightOfAnother(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	entitled, outsider := b.Role("entitled"), b.Role("outsider")
	b.Grant(receiveAsking, entitled)
	b.Grant(referenceWork, entitled)
	s := b.As(entitled)
	handle := s.Dialog()
	s.Send(handle, sqltest.Request, "1")
	s.Send(handle, sqltest.Request, "2")
	b.As(outsider).Refuses(229, "select parley.send($1::uuid, '//test/Request', '3')", handle)
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("received %q", got)
	}
}

// The owner of the initiator's service must hold SEND on the target (spec 4.2); the sender learns it by an Error message.
func TestTargetAsksForSendOfTheInitiatorsOwner(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("asker")
	b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", role)
	refused := b.Dialog()
	b.Send(refused, sqltest.Request, "x")
	b.RequireError("Asking", -8494)
	b.RequireState(refused, "ER")
	for _, r := range []sqltest.Right{sqltest.RightTo("SEND", "service", "//test/Answerer"), sqltest.RightTo("CONTROL", "service", "//test/Answerer")} {
		b.Grant(r, role)
		b.Conversation()
		b.Revoke(r, role)
	}
	b.Grant(sqltest.RightTo("SEND", "service", "//test/Answerer"), "PUBLIC")
	_, target := b.Conversation()
	// The other way back needs no right: the conversation is open.
	b.Send(target, sqltest.Reply, "x")
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestGrantOptionLetsTheGranteeGrant(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	deputy, other := b.Role("deputy"), b.Role("other")
	s := b.As(deputy)
	give := "select parley.grant('RECEIVE', 'queue', 'Asking', $1)"
	b.Exec(give, deputy)
	s.Refuses(15151, give, other)
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1, with_grant_option => true)", deputy)
	s.Exec(give, other)
	b.As(other).RequireAllowed("select parley.receive('Asking')")
	// Only that permission, and only on that object.
	s.Refuses(15151, "select parley.grant('ALTER', 'queue', 'Asking', $1)", other)
	s.Refuses(15151, "select parley.grant('RECEIVE', 'queue', 'Answering', $1)", other)
	s.Exec("select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", other)
	b.As(other).RequireDenied("select parley.receive('Asking')")
}

func TestGrantTwiceAndRevokeWhatWasNotGranted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("ordinary")
	b.Grant(receiveAsking, role)
	b.Grant(receiveAsking, role)
	sqltest.Equal(b.Session, 1, "select count(*) from parley.permissions")
	b.Revoke(receiveAsking, role)
	b.Revoke(receiveAsking, role)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.permissions")
}

func TestPermissionWordsAreReadInAnyCase(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("ordinary")
	b.Exec("select parley.grant('receive', 'QUEUE', 'dbo.[Asking]', $1)", role)
	b.Exec("select parley.grant('references', 'Message_Type', '//test/Note', $1)", role)
	sqltest.Equal(b.Session, "//test/Note REFERENCES on message type, Asking RECEIVE on queue", `
		select string_agg(format('%s %s on %s', object_name, permission, class), ', ' order by object_name) from parley.permissions`)
}

func TestPermissionsShowNamesAsGrantTakesThem(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role(`Odd "role"`)
	b.Grant(receiveAsking, role)
	b.Grant(createQueue, "PUBLIC")
	sqltest.Equal(b.Session, role, "select grantee from parley.permissions where permission = 'RECEIVE'")
	b.Exec("select parley.revoke(permission, class, object_name, grantee) from parley.permissions")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.permissions")
}

var remedy = regexp.MustCompile(`select parley\.grant\(.*\);`)

// The HINT of a refusal is the statement that helps, as it stands.
func TestHintOfARefusalHelps(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('[It''s a \"queue\" [really]]]')")
	role := b.Role(`Ev'en an "odd" role`)
	s := b.As(role)
	initiator, _ := b.Conversation()
	for _, statement := range []string{
		`select parley.receive('[It''s a "queue" [really]]]')`,
		"select parley.create_queue('New')",
		"select parley.end_conversation('" + initiator + "')",
	} {
		hint := s.Refuses(229, statement).Hint
		b.Exec(remedy.FindString(hint))
		s.RequireAllowed(statement)
	}
}

func TestDroppedObjectsTakeTheirGrantsAlong(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.create_message_type('//m')")
	b.Exec(`select parley.create_contract('//c', '{"//m": "ANY"}')`)
	b.Exec("select parley.create_queue('Q')")
	b.Exec("select parley.create_service('//s', 'Q')")
	b.Exec("select parley.create_route('r', 'LOCAL', '//s')")
	for _, object := range [][2]string{{"message type", "//m"}, {"contract", "//c"}, {"queue", "Q"}, {"service", "//s"}, {"route", "r"}} {
		b.Grant(sqltest.RightTo("CONTROL", object[0], object[1]), "PUBLIC")
	}
	for _, statement := range []string{"drop_route('r')", "drop_service('//s')", "drop_queue('Q')", "drop_contract('//c')", "drop_message_type('//m')"} {
		b.Exec("select parley." + statement)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.permissions")
}

func TestBacklogsAreOfQueuesThatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("ordinary")
	s := b.As(role)
	sqltest.Equal(s, 0, "select count(*)::int from parley.queue_backlogs()")
	b.Grant(receiveAsking, role)
	sqltest.Equal(s, "Asking", "select string_agg(queue_name, ' ') from parley.queue_backlogs()")
}
