package rights_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The bodies of functions are read with the settings of the caller: with standard_conforming_strings off a backslash in a literal is
// another character. A function takes and refuses the same.
func TestRightsChecksReadTheSameWhateverACallerHasSet(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_message_type('//json', 'JSON'), parley.create_message_type('//xml', 'WELL_FORMED_XML')")
	b.Exec("select parley.create_contract('//checked', array['//json', '//xml'])")
	b.Exec("select parley.alter_service('//test/Answerer', add_contracts => array['//checked'])")
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//checked')::text")
	b.Send(handle, "//json", "{}")
	b.Exec("select parley.create_queue('Read')")
	ended := b.Dialog()
	b.Send(ended, sqltest.Request, "x")
	statements := []string{
		"select parley.create_queue('[a.b]]c].\"d.e\"')",
		"select parley.create_queue('a[b')",
		"select parley.create_queue('a].b.c.d')",
		"select parley.create_route('r', 'tcp://host.example:4022', '//r')",
		"select parley.create_route('r', 'tcp://[::1]:4022', '//r')",
		"select parley.create_route('r', 'tcp://10.0.0.1:4022', '//r')",
		"select parley.create_route('r', 'tcp://10x0x0x1..:4022', '//r')",
		"select parley.create_route('r', 'tcp://0.0.0.0:4022', '//r')",
		"select parley.create_program_activation('Read', array['/opt/reader'])",
		"select parley.create_program_activation('Read', array['opt/reader'])",
		"select parley.create_program_activation('Read', array['C:' || chr(92) || 'reader.exe'])",
		"select parley.create_remote_service_binding('x', '//x', 'pg_monitor')",
		"select parley.create_contract('//new', '{\"//json\": \"SENT BY ANY\"}')",
		"select parley.create_certificate('x', 'PARLEYC1', null, decode(repeat('00', 101), 'hex'))",
		"select parley.send('" + handle + "', '//json', decode('efbbbf7b7d', 'hex'))",
		"select parley.send('" + handle + "', '//json', decode('fffe7b007d00', 'hex'))",
		"select parley.send('" + handle + "', '//json', decode('fffe00d8', 'hex'))",
		"select parley.send('" + handle + "', '//xml', decode('3c612f3e', 'hex'))",
		"select parley.end_conversation('" + ended + "', 1, 'a' || chr(1) || 'b')",
	}
	outcomes := func(setting string) (all []string) {
		s := b.Connection()
		s.Exec("set standard_conforming_strings = " + setting)
		s.Exec("set escape_string_warning = off")
		for _, statement := range statements {
			var refusal *pgconn.PgError
			if err := s.Try(statement); errors.As(err, &refusal) {
				all = append(all, statement+": "+refusal.Code+" "+refusal.Message)
			} else {
				all = append(all, statement+": done")
			}
		}
		return all
	}
	on := outcomes("on")
	if done := strings.Count(strings.Join(on, "\n"), ": done"); done < 8 || done > len(on)-5 {
		t.Errorf("%d of %d statements are taken: the test shows nothing\n%s", done, len(on), strings.Join(on, "\n"))
	}
	if off := outcomes("off"); strings.Join(off, "\n") != strings.Join(on, "\n") {
		t.Errorf("it depends on the setting:\n%s", sqltest.Difference(strings.Join(on, "\n"), strings.Join(off, "\n")))
	}
}
