package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/parser"
)

// uses lists the constructs of a batch with their states.
func uses(t *testing.T, text string) []check.Use {
	t.Helper()
	batch, err := parser.Parse(text, parser.Options{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return check.New().Batch(batch)
}

// Each row of the table has a name of its own, a known state, and a reason unless it runs.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range check.All() {
		upper := strings.ToUpper(row.Name)
		if seen[upper] {
			t.Errorf("%s stands twice", row.Name)
		}
		seen[upper] = true
		switch row.State {
		case check.Runs, check.Informs, check.Later, check.Refused:
		default:
			t.Errorf("%s has the state %q", row.Name, row.State)
		}
		if (row.State == check.Runs) != (row.Reason == "") || row.Family == "" {
			t.Errorf("%s: reason %q in family %q", row.Name, row.Reason, row.Family)
		}
	}
}

// No construct that the parser reads is unknown to the table: the constructs are those of the parser's own tests.
func TestTableKnowsEachConstructOfTheParser(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../parser/testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no constructs", err)
	}
	invented := regexp.MustCompile(`^(function F|function NOW|SET A|procedure sp_x|RESTORE [A-Z]+)$`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for construct := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n--\n") {
			for _, use := range uses(t, construct) {
				if use.Reason == "Parley does not know it" && !invented.MatchString(use.Name) {
					t.Errorf("%s is unknown: %s", use.Name, construct)
				}
			}
		}
	}
}

// Each kind of statement adds a construct: none is passed over in silence.
func TestNoStatementIsPassedOver(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../parser/testdata/*.sql")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for construct := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n--\n") {
			batch, err := parser.Parse(construct, parser.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range batch.Statements {
				kind := reflect.TypeOf(statement).String()
				if found := check.New().Batch(&ast.Batch{Statements: []ast.Statement{statement}}); len(found) == 0 {
					t.Errorf("%s adds nothing: %s", kind, construct)
				}
			}
		}
	}
}

// A construct has its state, its reason and its place; an unknown one is refused.
func TestConstructsHaveStateAndPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"PRINT 'x'":                                        "1:1 PRINT runs",
		"IF 1 = 1\n  CREATE ASSEMBLY a FROM 'x'":           "1:1 IF runs, 2:3 CREATE ASSEMBLY refused",
		"SELECT NOSUCH(1)":                                 "1:1 SELECT runs, 1:8 function NOSUCH refused",
		"SELECT dbo.NOSUCH(1)":                             "1:1 SELECT runs",
		"SELECT * FROM sys.nosuch":                         "1:1 SELECT runs, 1:15 view sys.nosuch refused",
		"EXEC sp_nosuch":                                   "1:1 procedure sp_nosuch refused",
		"CREATE QUEUE q ON g":                              "1:1 CREATE QUEUE runs, 1:1 queue ON filegroup informs",
		"EXEC ('BACKUP DATABASE d TO DISK = ''x''')":       "1:1 EXECUTE text runs, 1:7 BACKUP DATABASE refused",
		"EXEC sp_executesql N'PRINT 1'":                    "1:1 sp_executesql runs, 1:20 PRINT runs",
		"EXEC ('SELECT FROM')":                             "1:1 EXECUTE text runs, 1:7 text of EXECUTE refused",
		"ALTER DATABASE d SET NOSUCH ON":                   "1:1 ALTER DATABASE SET runs, 1:22 ALTER DATABASE SET NOSUCH refused",
		"ALTER AUTHORIZATION ON OBJECT::t TO SCHEMA OWNER": "1:1 ALTER AUTHORIZATION runs",
		"ALTER AUTHORIZATION ON ROLE::r TO dbo":            "1:1 ALTER AUTHORIZATION runs, 1:1 ALTER AUTHORIZATION of what has no owner in PostgreSQL refused",
		"ALTER AUTHORIZATION ON SERVICE::s TO SCHEMA OWNER": "1:1 ALTER AUTHORIZATION runs, " +
			"1:1 ALTER AUTHORIZATION to SCHEMA OWNER of what is in no schema refused",
		"SELECT @@NOSUCH": "1:1 SELECT runs, 1:8 @@NOSUCH refused",
		"DECLARE @a hierarchyid, @b integer, @c dbo.t": "1:9 DECLARE variable runs, 1:12 type hierarchyid refused, 1:25 DECLARE variable runs, 1:28 type int runs, 1:37 DECLARE variable runs, 1:40 type of the user's runs",
		"EXEC srv.db.dbo.p":                            "1:1 name with a server refused, 1:1 EXECUTE procedure runs",
		"CREATE EVENT NOTIFICATION n ON SERVER FOR X TO SERVICE 's', 'current database'": "1:1 CREATE EVENT NOTIFICATION ON SERVER refused",
	} {
		var got []string
		for _, use := range uses(t, text) {
			got = append(got, fmt.Sprintf("%d:%d %s %s", use.Line, use.Column, use.Name, use.State))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s:\n%s, want\n%s", text, strings.Join(got, ", "), want)
		}
	}
}

// A procedure of the user's may be called as those of the system are.
func TestProceduresOfTheScriptAreKnown(t *testing.T) {
	t.Parallel()
	checker := check.New()
	var batches []*ast.Batch
	for _, text := range []string{"EXEC dbo.SP_Mine", "CREATE PROCEDURE sp_mine AS SELECT 1 FROM mine(1) AS m CROSS APPLY STRING_SPLIT('a', ',')"} {
		batch, err := parser.Parse(text, parser.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checker.Define(batch)
		batches = append(batches, batch)
	}
	for _, batch := range batches {
		for _, use := range checker.Batch(batch) {
			if use.State == check.Refused {
				t.Errorf("%s is refused: %s", use.Name, use.Reason)
			}
		}
	}
}
