package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
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
