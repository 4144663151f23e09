package conversation_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A dialog may begin before its target is there where the setting says so. A name that is like that of a service gets a notice, which
// names it.
func TestBeginDialogReportsANameThatMayBeASlip(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Worker 1', 'Answering')")
	b.Exec("select parley.create_service('Web', 'Answering')")
	b.Exec("select parley.create_service('//test/Ans', 'Answering'), parley.create_service('//test/Ant', 'Answering')")
	b.Exec("select parley.create_route('there', 'tcp://there.example.com:4040', service_name => '//far/Warehouse')")
	for to, want := range map[string]string{
		"//test/answerer":   "//test/Answerer",
		"//test/Ansewrer":   "//test/Answerer",
		"//test/Anwerer":    "//test/Answerer",
		"//test/Answererr":  "//test/Answerer",
		"//tset/Answerer":   "//test/Answerer",
		"//test/Answerin":   "//test/Answerer",
		"//far/Warehose":    "//far/Warehouse",
		"web":               "Web",
		"//test/Antt":       "//test/Ant",
		"//test/Workerr 1":  "//test/Worker 1",
		"//test/Answerer":   "",
		"//far/Warehouse":   "",
		"//test/Questioner": "",
		"//test/Worker 2":   "",
		"Fib":               "",
		"//elsewhere":       "",
	} {
		t.Run(to, func(t *testing.T) {
			s, reported := b.Noticing("")
			s.T = t
			s.Exec(sqltest.UnknownTargets)
			s.Exec(sqltest.BeginTo, to)
			switch {
			case want == "" && len(*reported) > 0:
				t.Errorf("got %+v", (*reported)[0])
			case want != "" && (len(*reported) != 1 || (*reported)[0].Severity != "NOTICE" || (*reported)[0].Hint != `Did you mean "`+want+`"?` ||
				!strings.Contains((*reported)[0].Message, `"`+to+`"`)):
				t.Errorf("got %+v, want %q to be named", *reported, want)
			}
		})
	}
}

func TestSlipIsReportedOnceASession(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s, reported := b.Noticing("")
	s.Exec(sqltest.UnknownTargets)
	for range 3 {
		s.Exec(sqltest.BeginTo, "//test/answerer")
	}
	if len(*reported) != 1 {
		t.Errorf("got %d times", len(*reported))
	}
}

// A service in a database next door, and one that a route or the broker configuration service may find, is no slip.
func TestNameThatARouteLeadsToIsNoSlip(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("insert into parley._p_neighbour_service (service_name, address) values ('//test/answerer', 'broker:x')")
	b.Exec("select parley.create_route('any', 'tcp://there.example.com:4040', service_name => '//test/Ansverer')")
	s, reported := b.Noticing("")
	for _, to := range []string{"//test/answerer", "//test/Ansverer"} {
		s.Exec(sqltest.BeginTo, to)
	}
	if len(*reported) != 0 {
		t.Errorf("got %+v", *reported)
	}
}

// A role that may not see a service does not get its name.
func TestSlipNamesOnlyWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("asker")
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Asking"), role)
	s, reported := b.Noticing(role)
	s.Exec(sqltest.UnknownTargets)
	s.Exec(sqltest.BeginTo, "//test/answerer")
	if len(*reported) != 0 {
		t.Errorf("got %+v", *reported)
	}
	b.Grant(sqltest.RightTo("SEND", "service", "//test/Answerer"), role)
	s.Exec(sqltest.BeginTo, "//test/Ansverer")
	if len(*reported) != 1 || (*reported)[0].Hint != `Did you mean "//test/Answerer"?` {
		t.Errorf("got %+v", *reported)
	}
}
