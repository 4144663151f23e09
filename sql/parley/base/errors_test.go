package base_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// refusal is a statement that the broker refuses.
type refusal struct {
	number    int
	because   string
	statement string
	// ordinary is set when an ordinary role executes it; else the administrator does.
	ordinary bool
}

// errorRow is a row of parley.errors, its texts as patterns of what an error of it says.
type errorRow struct {
	Number    int
	Situation string
	Message   string
	Detail    string
	Hint      string
}

// situation is the name of a row.
type situation struct {
	number int
	name   string
}

// errorRows reads what the broker raises, by its own account. A rule of internal/sqlrules holds that each call of _p_raise has a row,
// and each row a call.
func errorRows(s sqltest.Session) []errorRow {
	s.Helper()
	found, err := s.DB.Query(s.Context(), `
		select e.number, e.situation, e.message,
			'Service Broker error ' || e.number || '.' || coalesce(' ' || e.cause, '') as detail, e.remedy as hint
		from parley.errors as e
		where e.form = 'RAISED'`)
	if err != nil {
		s.Fatal(err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByName[errorRow])
	if err != nil {
		s.Fatal(err)
	}
	if len(rows) < 100 {
		s.Fatalf("only %d situations: is this the table of errors?", len(rows))
	}
	return rows
}

// makes reports whether an error has the texts of the row, with any values in their places.
func (r errorRow) makes(e pgconn.PgError) bool {
	return e.Code == sqltest.SQLState(r.Number) && fits(r.Message, e.Message) && fits(r.Detail, e.Detail) && fits(r.Hint, e.Hint)
}

var place = regexp.MustCompile(`%[0-9]+\\\$[sIL]`)

func fits(template, text string) bool {
	pattern := place.ReplaceAllString(regexp.QuoteMeta(template), "(?s:.*)")
	return regexp.MustCompile("^" + strings.ReplaceAll(pattern, "%%", "%") + "$").MatchString(text)
}

func refusals() []refusal {
	all := [][]refusal{
		definitionRefusals, activationRefusals, nameRefusals, conversationRefusals, readingRefusals, diagnosisRefusals, rightRefusals,
		switchRefusals, peerRefusals, routeRefusals, securityRefusals,
	}
	list := []refusal{}
	for _, some := range all {
		list = append(list, some...)
	}
	return list
}

// provokedElsewhere are situations that need more than a statement, with the file of the test, below sql/, that makes them.
var provokedElsewhere = map[situation]string{
	{15151, "shared limit"}:          "parley/simple/limits_test.go",
	{229, "bound role"}:              "parley/catalog/certificates_test.go",
	{2714, "schedule"}:               "parley/schedules/schedules_test.go",
	{2714, "address of a peer"}:      "parley/trust/pairing_refusals_test.go",
	{574, "transaction"}:             "parley/activation/wait_statement_test.go",
	{574, "transaction has written"}: "parley/activation/wait_statement_test.go",
	{2714, "certificate"}:            "parley/catalog/certificates_test.go",
	{3716, "queue holds messages"}:   "parley/simple/inspection_test.go",
	{3716, "messages wait"}:          "parley/catalog/message_types_test.go",
	{3716, "used unseen"}:            "rights/names_test.go",
	{8402, "isolation"}:              "parley/poison/poison_test.go",
	{8402, "level"}:                  "parley/diagnosis/diagnosis_test.go",
	{8426, "ended meanwhile"}:        "parley/catalog/services_test.go",
	{9750, "unknown target"}:         "parley/conversation/unknown_targets_test.go",
	{9785, "unknown target"}:         "parley/conversation/unknown_targets_test.go",
	{8493, "certificate"}:            "parley/catalog/certificates_test.go",
	{15297, "private key"}:           "parley/catalog/certificates_test.go",
	{15297, "subject"}:               "parley/catalog/certificates_test.go",
	{15517, "execute as"}:            "rights/acting_as_test.go",
	{15517, "owner of the queue"}:    "rights/acting_as_test.go",
	{28055, "dialog certificates"}:   "parley/trust/pairing_refusals_test.go",
}

// Each error carries its number in SQLSTATE and DETAIL, and a HINT that states what to do: the texts of a row of parley.errors.
// Each row is provoked.
func TestRefusalsCarryNumberAndRemedy(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.Scene)
	ordinary := b.As(b.Role("ordinary"))
	rows := errorRows(b.Session)
	provoked := map[situation]bool{}
	for _, r := range refusals() {
		t.Run(strconv.Itoa(r.number)+" "+r.because, func(t *testing.T) {
			s := sqltest.Session{T: t, DB: b.DB}
			if r.ordinary {
				s.DB = ordinary.DB
			}
			refusal := s.Refuses(r.number, r.statement)
			i := slices.IndexFunc(rows, func(row errorRow) bool { return row.makes(refusal) })
			if i < 0 {
				t.Fatalf("no row of parley.errors makes %s", sqltest.Describe(&refusal))
			}
			provoked[situation{rows[i].Number, rows[i].Situation}] = true
		})
	}
	for _, row := range rows {
		s := situation{row.Number, row.Situation}
		file := provokedElsewhere[s]
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(file))); err != nil {
			t.Errorf("error %d, %q is provoked in %s: %v", s.number, s.name, file, err)
		}
		switch {
		case !provoked[s] && file == "":
			t.Errorf("nothing here provokes error %d, %q", s.number, s.name)
		case provoked[s] && file != "":
			t.Errorf("error %d, %q is provoked here: remove it from those that %s provokes", s.number, s.name, file)
		}
	}
}

func TestSQLStateOfErrorNumbers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, number := range sqltest.Values[int](b.Session, "select distinct e.number from parley.errors as e") {
		sqltest.Equal(b.Session, sqltest.SQLState(number), "select parley.sqlstate_of($1)", number)
		sqltest.Equal(b.Session, number, "select parley.error_number(parley.sqlstate_of($1))", number)
		sqltest.Equal(b.Session, sqltest.SQLState(number), "select distinct e.sqlstate from parley.errors as e where e.number = $1", number)
	}
}
