package sql_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestGrantToPublicIsForEverybody(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	s := b.as(b.role("ordinary"))
	for _, public := range []string{"PUBLIC", "public"} {
		s.requireDenied("select parley.receive('Asking')")
		b.grant(receiveAsking, public)
		s.requireAllowed("select parley.receive('Asking')")
		b.revoke(receiveAsking, public)
	}
	s.requireDenied("select parley.receive('Asking')")
}

func TestGrantToARoleIsForItsMembers(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	group, member, outsider := b.role("group"), b.role("member"), b.role("outsider")
	b.exec("grant " + quote(group) + " to " + quote(member))
	b.grant(receiveAsking, group)
	b.as(member).requireAllowed("select parley.receive('Asking')")
	b.as(outsider).requireDenied("select parley.receive('Asking')")
}

func TestRightsAreThoseOfTheRoleThatIsSet(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	group, member := b.role("group"), b.role("member")
	b.exec("alter role " + quote(member) + " noinherit")
	b.exec("grant " + quote(group) + " to " + quote(member))
	b.grant(receiveAsking, group)
	b.grant(referenceWork, group)
	s := b.as(member)
	s.requireDenied("select parley.receive('Asking')")
	s.exec("set role " + quote(group))
	s.requireAllowed("select parley.receive('Asking')")
	handle := s.dialog()
	s.send(handle, request, "x")
	s.send(handle, request, "x")
	s.exec("reset role")
	s.refuses(229, "select parley.send($1::uuid, '//test/Request', 'x')", handle)
	s.exec("set role " + quote(group))
	s.send(handle, request, "x")

	// An administrator that sets a role is no administrator any more.
	admin := b.connection()
	admin.exec("set role " + quote(b.role("ordinary")))
	admin.refuses(229, "select parley.receive('Asking')")
	admin.refuses(229, "select parley.send($1::uuid, '//test/Request', 'x')", handle)
	admin.refuses(28006, "select parley.end_conversation($1::uuid, cleanup => true)", handle)
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
			b := newWorld(t)
			group, member := b.role("group"), b.role("member")
			as := func(statement string) string {
				literal := "'" + member + "'"
				statement = strings.ReplaceAll(statement, ", group_role)", ", '"+group+"')")
				statement = strings.ReplaceAll(statement, "group_role", quote(group))
				return strings.ReplaceAll(strings.ReplaceAll(statement, "member_role", quote(member)), "$1", literal)
			}
			b.grant(referenceWork, member)
			b.exec(as(c.give))
			s := b.as(member)
			handle := s.dialog()
			sends := []string{
				"select parley.send($1::uuid, '//test/Request', 'x')",
				"select parley.send($1::uuid, '//test/Request', 'x'::bytea)",
				"select parley.send_to_all(array[$1::uuid], '//test/Request', 'x')",
				"select parley.send_batch($1::uuid, '//test/Request', array['x'])",
			}
			for _, statement := range sends {
				s.exec(statement, handle)
			}
			b.exec(as(c.take))
			for _, statement := range sends {
				s.refuses(229, statement, handle)
			}
		})
	}
}

func TestOneRoleDoesNotSendByTheRightOfAnother(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	entitled, outsider := b.role("entitled"), b.role("outsider")
	b.grant(receiveAsking, entitled)
	b.grant(referenceWork, entitled)
	s := b.as(entitled)
	handle := s.dialog()
	s.send(handle, request, "1")
	s.send(handle, request, "2")
	b.as(outsider).refuses(229, "select parley.send($1::uuid, '//test/Request', '3')", handle)
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("received %q", got)
	}
}

// The owner of the initiator's service must hold SEND on the target (spec 4.2); the sender learns it by an Error message.
func TestTargetAsksForSendOfTheInitiatorsOwner(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("asker")
	b.exec("select parley.alter_authorization('service', '//test/Asker', $1)", role)
	refused := b.dialog()
	b.send(refused, request, "x")
	b.requireError("Asking", -8494)
	b.requireState(refused, "ER")
	for _, r := range []right{{"SEND", "service", "//test/Answerer"}, {"CONTROL", "service", "//test/Answerer"}} {
		b.grant(r, role)
		b.conversation()
		b.revoke(r, role)
	}
	b.grant(right{"SEND", "service", "//test/Answerer"}, "PUBLIC")
	_, target := b.conversation()
	// The other way back needs no right: the conversation is open.
	b.send(target, reply, "x")
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestGrantOptionLetsTheGranteeGrant(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	deputy, other := b.role("deputy"), b.role("other")
	s := b.as(deputy)
	give := "select parley.grant('RECEIVE', 'queue', 'Asking', $1)"
	b.exec(give, deputy)
	s.refuses(15151, give, other)
	b.exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1, with_grant_option => true)", deputy)
	s.exec(give, other)
	b.as(other).requireAllowed("select parley.receive('Asking')")
	// Only that permission, and only on that object.
	s.refuses(15151, "select parley.grant('ALTER', 'queue', 'Asking', $1)", other)
	s.refuses(15151, "select parley.grant('RECEIVE', 'queue', 'Answering', $1)", other)
	s.exec("select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", other)
	b.as(other).requireDenied("select parley.receive('Asking')")
}

func TestGrantTwiceAndRevokeWhatWasNotGranted(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("ordinary")
	b.grant(receiveAsking, role)
	b.grant(receiveAsking, role)
	equal(b.session, 1, "select count(*) from parley.permissions")
	b.revoke(receiveAsking, role)
	b.revoke(receiveAsking, role)
	equal(b.session, 0, "select count(*) from parley.permissions")
}

func TestPermissionWordsAreReadInAnyCase(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("ordinary")
	b.exec("select parley.grant('receive', 'QUEUE', 'dbo.[Asking]', $1)", role)
	b.exec("select parley.grant('references', 'Message_Type', '//test/Note', $1)", role)
	equal(b.session, "//test/Note REFERENCES on message type, Asking RECEIVE on queue", `
		select string_agg(format('%s %s on %s', object_name, permission, class), ', ' order by object_name) from parley.permissions`)
}

func TestPermissionsShowNamesAsGrantTakesThem(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role(`Odd "role"`)
	b.grant(receiveAsking, role)
	b.grant(createQueue, "PUBLIC")
	equal(b.session, role, "select grantee from parley.permissions where permission = 'RECEIVE'")
	b.exec("select parley.revoke(permission, class, object_name, grantee) from parley.permissions")
	equal(b.session, 0, "select count(*) from parley.permissions")
}

var remedy = regexp.MustCompile(`select parley\.grant\(.*\);`)

// The HINT of a refusal is the statement that helps, as it stands.
func TestHintOfARefusalHelps(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('[It''s a \"queue\" [really]]]')")
	role := b.role(`Ev'en an "odd" role`)
	s := b.as(role)
	initiator, _ := b.conversation()
	for _, statement := range []string{
		`select parley.receive('[It''s a "queue" [really]]]')`,
		"select parley.create_queue('New')",
		"select parley.end_conversation('" + initiator + "')",
	} {
		hint := s.refuses(229, statement).Hint
		b.exec(remedy.FindString(hint))
		s.requireAllowed(statement)
	}
}

func TestDroppedObjectsTakeTheirGrantsAlong(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.create_message_type('//m')")
	b.exec(`select parley.create_contract('//c', '{"//m": "ANY"}')`)
	b.exec("select parley.create_queue('Q')")
	b.exec("select parley.create_service('//s', 'Q')")
	b.exec("select parley.create_route('r', 'LOCAL', '//s')")
	for _, object := range [][2]string{{"message type", "//m"}, {"contract", "//c"}, {"queue", "Q"}, {"service", "//s"}, {"route", "r"}} {
		b.grant(right{"CONTROL", object[0], object[1]}, "PUBLIC")
	}
	for _, statement := range []string{"drop_route('r')", "drop_service('//s')", "drop_queue('Q')", "drop_contract('//c')", "drop_message_type('//m')"} {
		b.exec("select parley." + statement)
	}
	equal(b.session, 0, "select count(*) from parley.permissions")
}

func TestBacklogsAreOfQueuesThatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("ordinary")
	s := b.as(role)
	equal(s, 0, "select count(*)::int from parley.queue_backlogs()")
	b.grant(receiveAsking, role)
	equal(s, "Asking", "select string_agg(queue_name, ' ') from parley.queue_backlogs()")
}
