package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestBuiltInMessageTypesHaveTheirIDsAndValidations(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	got := sqltest.Values[string](b.Session, `
		select format('%s %s %s', message_type_id, name, validation) from parley.service_message_types order by message_type_id`)
	const prefix = "http://schemas.microsoft.com/SQL/"
	want := []string{
		"1 " + prefix + "ServiceBroker/Error X",
		"2 " + prefix + "ServiceBroker/EndDialog E",
		"3 " + prefix + "Notifications/QueryNotification X",
		"4 " + prefix + "Notifications/EventNotification X",
		"5 " + prefix + "ServiceBroker/DialogTimer E",
		"6 " + prefix + "ServiceBroker/BrokerConfigurationNotice/MissingRoute X",
		"7 " + prefix + "ServiceBroker/BrokerConfigurationNotice/FailedRoute X",
		"8 " + prefix + "ServiceBroker/BrokerConfigurationNotice/MissingRemoteServiceBinding X",
		"9 " + prefix + "ServiceBroker/BrokerConfigurationNotice/FailedRemoteServiceBinding X",
		"10 " + prefix + "ServiceBroker/ServiceEcho/Echo N",
		"11 " + prefix + "ServiceBroker/ServiceDiagnostic/Query X",
		"12 " + prefix + "ServiceBroker/ServiceDiagnostic/Status X",
		"13 " + prefix + "ServiceBroker/ServiceDiagnostic/Description N",
		"14 DEFAULT N",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// So the test id < 65536 distinguishes system objects from users' (spec 2.0).
func TestUserObjectsHaveIDsFrom65536(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	ids := []int{
		sqltest.Value[int](b.Session, "select parley.create_message_type('//m')"),
		sqltest.Value[int](b.Session, `select parley.create_contract('//c', '{"//m": "ANY"}')`),
		sqltest.Value[int](b.Session, "select parley.create_queue('Q')"),
		sqltest.Value[int](b.Session, "select parley.create_service('//s', 'Q')"),
		sqltest.Value[int](b.Session, "select parley.create_broker_priority('P')"),
	}
	for _, id := range ids {
		if id < 65536 {
			t.Errorf("a user's object has id %d", id)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 5 {
		t.Errorf("ids repeat: %v", ids)
	}
}

func TestMessageTypeValidationDefaultsToNone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.create_message_type('//m')")
	sqltest.Equal(b.Session, "N NONE", "select validation || ' ' || validation_desc from parley.service_message_types where name = '//m'")
}

func TestValidationWordsGiveCatalogLetters(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("create function public.check_body(body bytea) returns boolean language sql as 'select true'")
	for _, c := range []struct{ arguments, want string }{
		{"'NONE'", "N NONE"},
		{"'empty'", "E EMPTY"},
		{"'WELL_FORMED_XML'", "X XML"},
		{"'well formed xml'", "X XML"},
		{"'VALID_XML', schema_collection => 'orders', validation_function => 'public.check_body(bytea)'", "X XML"},
		{"'VALID_XML', validation_function => 'public.check_body(bytea)'", "X XML"},
		{"'JSON'", "J JSON"},
		{"'JSON_SCHEMA', validation_function => 'public.check_body(bytea)'", "J JSON"},
		{"'FUNCTION', validation_function => 'public.check_body(bytea)'", "F FUNCTION"},
	} {
		b.Exec(fmt.Sprintf("select parley.create_message_type('//m', %s)", c.arguments))
		sqltest.Equal(b.Session, c.want, "select validation || ' ' || validation_desc from parley.service_message_types where name = '//m'")
		// ALTER takes the same words.
		b.Exec("select parley.alter_message_type('//m', 'NONE')")
		b.Exec(fmt.Sprintf("select parley.alter_message_type('//m', %s)", c.arguments))
		sqltest.Equal(b.Session, c.want, "select validation || ' ' || validation_desc from parley.service_message_types where name = '//m'")
		b.Exec("select parley.drop_message_type('//m')")
	}
}

// A schema collection that nothing reads would let every document pass.
func TestValidXMLWithoutAFunctionIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Refuses(8402, "select parley.create_message_type('//m', 'VALID_XML', schema_collection => 'orders')")
	b.Refuses(8402, "select parley.create_message_type('//m', 'VALID_XML')")
	b.Refuses(8402, "select parley.alter_message_type('//test/Note', 'valid xml', schema_collection => 'orders')")
	sqltest.Equal(b.Session, "N", "select validation from parley.service_message_types where name = '//test/Note'")
	sqltest.Equal(b.Session, false, "select exists (select from parley.service_message_types where name = '//m')")
}

func TestNamesOfMessageTypesAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	// Case, accents, normal forms, blanks: each is another name.
	names := []string{"Caf\u00e9", "CAF\u00c9", "Cafe\u0301", "Cafe", "caf\u00e9", "Caf\u00e9 ", " Caf\u00e9", "#Caf\u00e9"}
	for _, name := range names {
		b.Exec("select parley.create_message_type($1)", name)
	}
	for _, name := range names {
		b.Refuses(2714, "select parley.create_message_type($1)", name)
	}
	sqltest.Equal(b.Session, len(names), "select count(*) from parley.service_message_types where message_type_id >= 65536")
}

func TestHintNamesWhatDiffersByCaseOnly(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	err := b.Refuses(8428, "select parley.send($1::uuid, '//TEST/Request', 'x')", b.Dialog())
	if want := `Did you mean "//test/Request"?`; !strings.Contains(err.Detail, want) {
		t.Errorf("the detail %q does not ask %q", err.Detail, want)
	}
}

func TestNamesMayBe128CharactersOfAnyScript(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, letter := range []string{"x", "ü", "€", "𝄞"} {
		b.Exec("select parley.create_message_type(repeat($1, 128))", letter)
		b.Exec("select parley.drop_message_type(repeat($1, 128))", letter)
	}
}

func TestAlterMessageTypeLeavesWaitingMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "no JSON")
	b.Exec("select parley.alter_message_type($1, 'JSON')", sqltest.Request)
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"no JSON"}) {
		t.Errorf("received %q", got)
	}
}

// A conversation that has sent before takes a short way: that way must not miss the change.
func TestAlterMessageTypeGovernsTheNextSend(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "no JSON")
	b.Exec("select parley.alter_message_type($1, 'JSON')", sqltest.Request)
	b.Send(initiator, sqltest.Request, "{}")
	b.Send(initiator, sqltest.Request, "no JSON either")
	b.RequireError("Asking", -8430)
	b.RequireState(initiator, "ER")
	b.RequireState(target, "ER")
}

func TestDroppedMessageTypeNameIsFreeAgain(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	first := sqltest.Value[int](b.Session, "select parley.create_message_type('//m', 'JSON')")
	b.Exec("select parley.drop_message_type('//m')")
	if second := sqltest.Value[int](b.Session, "select parley.create_message_type('//m')"); second == first {
		t.Errorf("the id %d is used again", first)
	}
	sqltest.Equal(b.Session, "N", "select validation from parley.service_message_types where name = '//m'")
}

// A type that were gone would leave a message nobody can receive, and nothing behind it either.
func TestMessageTypeOfWaitingMessagesCannotBeDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "waiting")
	b.Exec("select parley.alter_service('//test/Asker', drop_contracts => array['//test/Work'])")
	b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	b.Exec("select parley.drop_contract('//test/Work')")
	b.Refuses(3716, "select parley.drop_message_type($1)", sqltest.Request)
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.ErrorMessage, sqltest.Request}) {
		t.Errorf("received %q", got)
	}
	b.Exec("select parley.drop_message_type($1)", sqltest.Request)
	b.End(initiator)
	b.End(target)
}
