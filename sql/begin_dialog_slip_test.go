package sql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// noticing opens a session of a role ("" for the administrator) that keeps the notices of the server.
func (b *broker) noticing(role string) (session, *[]pgconn.Notice) {
	b.Helper()
	var reported []pgconn.Notice
	config := b.pool.Config().ConnConfig.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { reported = append(reported, *n) }
	conn, err := pgx.ConnectConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	s := session{T: b.T, db: conn}
	if role != "" {
		s.exec("set session authorization " + quote(role))
	}
	return s, &reported
}

const (
	beginTo = "select parley.begin_dialog('//test/Asker', $1)"
	// unknownTargets lets a session begin dialogs to where nothing leads.
	unknownTargets = "set parley.allow_unknown_targets = on"
)

// A dialog may begin before its target is there where the setting says so. A name that is like that of a service gets a notice, which
// names it.
func TestBeginDialogReportsANameThatMayBeASlip(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Worker 1', 'Answering')")
	b.exec("select parley.create_service('Web', 'Answering')")
	b.exec("select parley.create_service('//test/Ans', 'Answering'), parley.create_service('//test/Ant', 'Answering')")
	b.exec("select parley.create_route('there', 'tcp://there.example.com:4040', service_name => '//far/Warehouse')")
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
			s, reported := b.noticing("")
			s.T = t
			s.exec(unknownTargets)
			s.exec(beginTo, to)
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
	b := newWorld(t)
	s, reported := b.noticing("")
	s.exec(unknownTargets)
	for range 3 {
		s.exec(beginTo, "//test/answerer")
	}
	if len(*reported) != 1 {
		t.Errorf("got %d times", len(*reported))
	}
}

// A service in a database next door, and one that a route or the broker configuration service may find, is no slip.
func TestNameThatARouteLeadsToIsNoSlip(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("insert into parley._p_neighbour_service (service_name, address) values ('//test/answerer', 'broker:x')")
	b.exec("select parley.create_route('any', 'tcp://there.example.com:4040', service_name => '//test/Ansverer')")
	s, reported := b.noticing("")
	for _, to := range []string{"//test/answerer", "//test/Ansverer"} {
		s.exec(beginTo, to)
	}
	if len(*reported) != 0 {
		t.Errorf("got %+v", *reported)
	}
}

// A role that may not see a service does not get its name.
func TestSlipNamesOnlyWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("asker")
	b.grant(right{"RECEIVE", "queue", "Asking"}, role)
	s, reported := b.noticing(role)
	s.exec(unknownTargets)
	s.exec(beginTo, "//test/answerer")
	if len(*reported) != 0 {
		t.Errorf("got %+v", *reported)
	}
	b.grant(right{"SEND", "service", "//test/Answerer"}, role)
	s.exec(beginTo, "//test/Ansverer")
	if len(*reported) != 1 || (*reported)[0].Hint != `Did you mean "//test/Answerer"?` {
		t.Errorf("got %+v", *reported)
	}
}
