package sqlrules_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqlrules"
)

// table writes a file of errors with these rows.
func table(rows ...string) string {
	return "-- Head.\n\ncreate view parley._p_error as\nselect e.number, e.situation, e.message, e.cause, e.remedy\nfrom (values\n  " +
		strings.Join(rows, ",\n  ") + "\n) as e (number, situation, message, cause, remedy);\n\ncomment on view parley._p_error is 'Errors.';\n"
}

func TestRulesRefuseErrorsThatAreNoData(t *testing.T) {
	t.Parallel()
	const row = "(8426, 'closed', 'handle \"%1$s\" not found', 'It''s closed: %2$s%%.', 'Begin a new ' || 'dialog.')"
	const call = "found := parley._p_raise(8426, 'closed', handle::text, coalesce(a, b));"
	cases := []struct {
		name, call string
		rows       []string
		want       string // in the text of the violation; empty when there is none
	}{
		{"a call and its row", call, []string{row}, ""},
		{"a number that no row has", strings.Replace(call, "8426", "8427", 1), []string{row}, "no row of parley/base/definition_errors.sql or parley/base/conversation_errors.sql is for 8427, 'closed'"},
		{"a situation that no row has", strings.Replace(call, "closed", "gone", 1), []string{row}, "is for 8426, 'gone'"},
		{"a number that is no constant", strings.Replace(call, "8426", "v_number", 1), []string{row}, "as constants"},
		{"a situation that is no constant", strings.Replace(call, "'closed'", "'closed' || x", 1), []string{row}, "as constants"},
		{"a number alone", "found := parley._p_raise(8426);", []string{row}, "as constants"},
		{"an argument too few", strings.Replace(call, ", coalesce(a, b)", "", 1), []string{row}, "1 arguments are given, the texts of 8426, 'closed' take 2"},
		{"an argument too many", strings.Replace(call, "handle::text", "x[1, 2], y", 1), []string{row}, "3 arguments are given"},
		{"a row that is not raised", call, []string{row, "(8426, 'new', 'x', null, 'y')"}, "nothing raises or sends 8426, 'new'"},
		{"two rows of one situation", call, []string{row, row}, "has a row already"},
		{"a row without a remedy", call, []string{strings.Replace(row, "'Begin a new ' || 'dialog.'", "null", 1)}, "does not say what happened or what to do"},
		{"a row without a cause", strings.Replace(call, ", coalesce(a, b)", "", 1), []string{strings.Replace(row, "'It''s closed: %2$s%%.'", "null", 1)}, ""},
		{"a place without a number", call, []string{strings.Replace(row, "%1$s", "%s", 1)}, "write places as"},
		{"a place left out", call, []string{strings.Replace(row, "%1$s", "%3$s", 1)}, "write places as"},
		{"a percent sign alone", call, []string{strings.Replace(row, "%%", "%", 1)}, "write places as"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireErrorRule(t, "parley/base/conversation_errors.sql", c.rows, c.call, c.want)
		})
	}
}

// requireErrorRule requires what the rules say of a file of errors with these rows, and of a function with this call.
func requireErrorRule(t *testing.T, file string, rows []string, call, want string) {
	t.Helper()
	var found []string
	for _, v := range sqlrules.Check([]sqlrules.File{
		sqlrules.Parse(file, table(rows...)),
		sqlrules.Parse("parley/send/send.sql", "-- Head.\n"+fn("parley._p_f", call)),
	}) {
		found = append(found, v.String())
	}
	all := strings.Join(found, "\n")
	if want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}

func TestRulesRefuseTextsThatTravelAndAreNoData(t *testing.T) {
	t.Parallel()
	const row = "(8470, 'dropped', 'The service \"%1$s\" was dropped.', null, 'As you like.')"
	for _, c := range []struct{ name, file, call, want string }{
		{"a message and its row", "parley/base/message_errors.sql", "perform parley._p_break_conversations(x, parley._p_error_of(8470, 'dropped', name));", ""},
		{"a status and its row", "parley/base/status_errors.sql", "perform parley._p_hold_outgoing(x, parley._p_status(8470, 'dropped', name));", ""},
		{"an outcome and a situation", "parley/base/status_errors.sql", "return parley._p_verdict_of('held', 0, parley._p_error_of(8470, 'dropped', name));", ""},
		{"a row of messages as a status", "parley/base/message_errors.sql", "x := parley._p_status(8470, 'dropped', name);", "no row of parley/base/status_errors.sql is for 8470"},
		{"a row of messages that is raised", "parley/base/message_errors.sql", "found := parley._p_raise(8470, 'dropped', name);", "conversation_errors.sql is for 8470"},
		{"a row that is raised as a message", "parley/base/conversation_errors.sql", "x := parley._p_error_of(8470, 'dropped', name);", "status_errors.sql is for 8470"},
		{"an argument too few", "parley/base/message_errors.sql", "x := parley._p_error_of(8470, 'dropped');", "0 arguments are given, the texts of 8470, 'dropped' take 1"},
		{"a sentence on its way", "parley/base/message_errors.sql", "perform parley._p_hold_outgoing(x, 'It has ended.');", "not 'It has ended.'"},
		{"a row that is not sent", "parley/base/message_errors.sql", "x := 1;", "nothing raises or sends 8470, 'dropped'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireErrorRule(t, c.file, []string{row}, c.call, c.want)
		})
	}
}
