package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A row of a file of errors: its number, its situation, and its message, which may be put together by ||.
var errorRow = regexp.MustCompile(`(?m)^  \((\d+), '[^']+',\s*((?:'(?:[^']|'')*'(?:\s*\|\|\s*)?)+)`)

// numbered is a text that begins with a number of Service Broker.
var numbered = regexp.MustCompile(`^(\d{4,5}): (.+)$`)

// errorTexts gives the messages of the rows of a file of errors, by number.
func errorTexts(t *testing.T, file string) map[int][]string {
	t.Helper()
	texts := map[int][]string{}
	for _, found := range errorRow.FindAllStringSubmatch(read(t, file), -1) {
		number, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		var message strings.Builder
		for _, part := range regexp.MustCompile(`'((?:[^']|'')*)'`).FindAllStringSubmatch(found[2], -1) {
			message.WriteString(strings.ReplaceAll(part[1], "''", "'"))
		}
		texts[number] = append(texts[number], message.String())
	}
	return texts
}

// isErrorNumber reports whether a constant of the daemon is a number of Service Broker.
func isErrorNumber(n int) bool {
	return n >= 8400 && n < 8500 || n >= 9600 && n < 9800 || n >= 11200 && n < 11300 || n >= 28000 && n < 28100
}

// spoken gives the numbers and the numbered texts that stand in a Go file.
func spoken(t *testing.T, path string) (numbers []int, texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sum, ok := n.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
			if text, ok := constantText(sum); ok {
				texts = append(texts, text)
				return false
			}
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok {
			return true
		}
		if literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts = append(texts, text)
			}
		} else if number, err := strconv.Atoi(literal.Value); err == nil && isErrorNumber(number) {
			numbers = append(numbers, number)
		}
		return true
	})
	return numbers, texts
}

// constantText puts a sum of string literals together.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := constantText(e.X)
		right, isRight := constantText(e.Y)
		return left + right, isLeft && isRight
	}
	return "", false
}

// The daemon cannot always ask the database for its texts, so this holds them against the table of errors.
func TestNumbersAndTextsOfTheDaemonAreInTheTableOfErrors(t *testing.T) {
	t.Parallel()
	rows := errorTexts(t, "sql/parley/base/daemon_errors.sql")
	if len(rows) < 20 {
		t.Fatalf("only %d numbers: are these the errors of the daemon?", len(rows))
	}
	used := map[int]bool{}
	for _, f := range goFiles(t) {
		folder := filepath.ToSlash(filepath.Dir(f.path))
		inDaemon := strings.HasPrefix(folder, "internal/broker/transport") || folder == "internal/broker/trust" || folder == "internal/broker/dialogsecurity"
		if !inDaemon || f.isTest() {
			continue
		}
		numbers, texts := spoken(t, filepath.Join(root(t), f.path))
		for _, number := range numbers {
			used[number] = true
			if rows[number] == nil {
				t.Errorf("%s: no row of sql/parley/base/daemon_errors.sql is for %d", f.path, number)
			}
		}
		for _, text := range texts {
			found := numbered.FindStringSubmatch(text)
			if found == nil {
				continue
			}
			number, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			used[number] = true
			if !slices.Contains(rows[number], found[2]) {
				t.Errorf("%s: no row of sql/parley/base/daemon_errors.sql says %q", f.path, text)
			}
		}
	}
	for number := range rows {
		if !used[number] {
			t.Errorf("sql/parley/base/daemon_errors.sql: the daemon does not speak of %d: strike it", number)
		}
	}
}
