package layering_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A call with three arguments by position is right until somebody puts one between them. By name it is right, or fails. The statements of
// mail transport name all.
func TestCallsOfTheSchemaNameTheirArguments(t *testing.T) {
	t.Parallel()
	calls := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// The rules of the SQL list signatures; the kit of its tests is part of them; the peers are a module of their own.
			if name := entry.Name(); name == "testdata" || name == "sqlrules" || name == "sqltest" || name == "peers" || len(name) > 2 && name[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, 0)
		if err != nil {
			return err
		}
		most := 2
		if strings.HasPrefix(filepath.ToSlash(path), "../../internal/store/mail/") {
			most = 0
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return true
			}
			for _, call := range callsOfSchema(text) {
				calls++
				if unnamed := call.unnamed(); unnamed > most {
					t.Errorf("%s: %s is called with %d of %d arguments by position: name each (queue => $1)",
						files.Position(literal.Pos()), call.function, unnamed, len(call.arguments))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 100 {
		t.Errorf("found %d calls of the schema in Go: this test does not see them any more", calls)
	}
}

func TestCallsThatNameTheirArgumentsAreTold(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]int{
		"select parley.send($1, $2, $3)":                                          3,
		"select parley.put(queue => $1, body => $2, key => f(a, b))":              0,
		"select parley_mail._p_claim($1, ')', lease => (select min(x, y) from z)": 0, // it is not closed
		"select parley.put($1, 'a, b')":                                           2,
		"select parley.receive('q', top => 1, timeout => 2)":                      1,
		"select format('parley.alter_route(%L, %L, %L)', $1, $2, $3)":             0,
		"select parley.current_caller()":                                          0,
	} {
		unnamed := 0
		for _, call := range callsOfSchema(statement) {
			unnamed += call.unnamed()
		}
		if unnamed != want {
			t.Errorf("%s has %d arguments by position, want %d", statement, unnamed, want)
		}
	}
}

type schemaCall struct {
	function  string
	arguments []string
}

func (c schemaCall) unnamed() (count int) {
	for _, argument := range c.arguments {
		if !namesArgument.MatchString(argument) {
			count++
		}
	}
	return count
}

var (
	callOfSchema  = regexp.MustCompile(`\bparley(?:_flow|_mail|_store)?\.[a-z_][a-z0-9_]*\(`)
	namesArgument = regexp.MustCompile(`^\s*"?[a-z_][a-z0-9_]*"?\s*=>`)
)

// callsOfSchema gives the calls in a statement that are closed in it.
func callsOfSchema(statement string) (calls []schemaCall) {
	for _, at := range callOfSchema.FindAllStringIndex(statement, -1) {
		// A call inside a text of the statement is shown to somebody, or run by another statement.
		if strings.Count(statement[:at[0]], "'")%2 == 1 {
			continue
		}
		call := schemaCall{function: statement[at[0] : at[1]-1]}
		depth, begin, isQuoted := 1, at[1], false
		for i := at[1]; i < len(statement) && depth > 0; i++ {
			switch c := statement[i]; {
			case c == '\'':
				isQuoted = !isQuoted
			case isQuoted:
			case c == '(' || c == '[':
				depth++
			case c == ')' || c == ']':
				depth--
			}
			if !isQuoted && (depth == 0 || depth == 1 && statement[i] == ',') {
				if argument := statement[begin:i]; strings.TrimSpace(argument) != "" {
					call.arguments = append(call.arguments, argument)
				}
				begin = i + 1
			}
		}
		if depth == 0 {
			calls = append(calls, call)
		}
	}
	return calls
}
