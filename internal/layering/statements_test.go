package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	privateName    = regexp.MustCompile(`\bparley\._p_\w+`)
	publicFunction = regexp.MustCompile(`\bparley\.[a-z]\w*\(`)
)

// Packages that speak to the schema by statements, beside those of internal/store and the examples.
var speaksToTheSchema = []string{"parley", "flow", "schema", "operate", "internal/pgdb", "internal/trusted", "internal/fixture", "internal/sqltest"}

// Packages that name private functions or tables of the schema. The list may only become shorter.
var namesPrivately = []string{
	"internal/sqlrules", // its rules excuse functions by their names
}

// Packages that call public functions of the schema by statements of their own. The list may only become shorter.
var callsFunctions = []string{
	"internal/broker/verbs/messages", // poison retry has a number and an age turned into a filter by the database
	"internal/broker/verbs/trust",    // a hint of dialog-certificate import gives the statement to type
	"internal/measure/bench",         // workloads are written as a program in any language would
	"internal/measure/demo",
	"internal/measure/instructions", // as bench
}

// unfinishedName is the beginning of a call whose name is put together from pieces, so that no rule sees it.
var unfinishedName = regexp.MustCompile("\\bparley\\.([\"`]$|%)")

// tsqlCalls is the list of the functions that statements of T-SQL call: the functions themselves take the arguments from the batch.
const tsqlCalls = "internal/tsql/calls"

// A function of the schema that a statement of T-SQL calls is in the list of calls, and there it is one of the schema.
func TestStatementsOfTSQLCallTheFunctionsOfTheirList(t *testing.T) {
	t.Parallel()
	listed := 0
	created := functionsOfTheSchema(t)
	for _, f := range goFiles(t) {
		if f.isTest() || !strings.HasPrefix(f.pkg, "internal/tsql/") {
			continue
		}
		if f.pkg != tsqlCalls {
			for _, text := range continuedLiterals(t, f.path) {
				if unfinishedName.MatchString(text) {
					t.Errorf("%s puts the name of a function together behind %s: take it from %s", f.path, text, tsqlCalls)
				}
			}
			continue
		}
		for _, text := range stringLiterals(t, f.path) {
			name, is := strings.CutPrefix(strings.Trim(text, `"`), "parley.")
			if !is {
				continue
			}
			listed++
			if !created[name] {
				t.Errorf("%s lists %s, which the schema does not have", f.path, name)
			}
		}
	}
	if listed < 30 {
		t.Errorf("the list has %d functions: this test does not see them any more", listed)
	}
}

var createdFunction = regexp.MustCompile(`(?m)^create (?:or replace )?function parley\."?([a-z]\w*)"?\s*\(`)

func functionsOfTheSchema(t *testing.T) map[string]bool {
	t.Helper()
	created := map[string]bool{}
	err := filepath.WalkDir("../../sql/parley", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range createdFunction.FindAllStringSubmatch(string(text), -1) {
			created[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// A statement on the schema is in the public package, in pgdb or in a package of the store, so that what a function of the schema takes
// and gives is known in one place of the Go code.
func TestFunctionsOfTheSchemaAreCalledByTheStoreAndThePublicPackage(t *testing.T) {
	t.Parallel()
	privately, calls := map[string]bool{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if f.isTest() || slices.Contains(speaksToTheSchema, f.pkg) || strings.HasPrefix(f.pkg, "internal/store/") || strings.HasPrefix(f.pkg, "examples/") {
			continue
		}
		for _, text := range stringLiterals(t, f.path) {
			if found := privateName.FindString(text); found != "" {
				privately[f.pkg] = true
				if !slices.Contains(namesPrivately, f.pkg) {
					t.Errorf("%s names %s: statements on private names belong to internal/store", f.path, found)
				}
			}
			if found := publicFunction.FindString(text); found != "" {
				calls[f.pkg] = true
				if !slices.Contains(callsFunctions, f.pkg) {
					t.Errorf("%s calls %s): call a Go function of the public package or of internal/store", f.path, found)
				}
			}
		}
	}
	for _, pkg := range namesPrivately {
		if !privately[pkg] {
			t.Errorf("%s names nothing private: take it off the list", pkg)
		}
	}
	for _, pkg := range callsFunctions {
		if !calls[pkg] {
			t.Errorf("%s calls no function of the schema: take it off the list", pkg)
		}
	}
}

// continuedLiterals gives the texts of a file behind which another text is put, and those with a place for one.
func continuedLiterals(t *testing.T, path string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		sum, ok := n.(*ast.BinaryExpr)
		if !ok || sum.Op != token.ADD {
			return true
		}
		left := sum.X
		if inner, isSum := left.(*ast.BinaryExpr); isSum {
			left = inner.Y
		}
		if literal, isText := left.(*ast.BasicLit); isText && literal.Kind == token.STRING {
			texts = append(texts, literal.Value)
		}
		return true
	})
	for _, text := range stringLiterals(t, path) {
		if strings.Contains(text, "parley.%") {
			texts = append(texts, text)
		}
	}
	return texts
}

func stringLiterals(t *testing.T, path string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			texts = append(texts, literal.Value)
		}
		return true
	})
	return texts
}
