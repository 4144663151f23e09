package fault

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var numberOfFive = regexp.MustCompile(`\b\d{2,5}\b`)

// A row that nothing raises is a text that nobody sees, and nobody keeps right. Numbers stand in the Go code as whole numbers, and in the
// procedures of the system, which are T-SQL.
func TestEachRowIsRaised(t *testing.T) {
	t.Parallel()
	written := map[int]bool{}
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "_test.go") {
			return err
		}
		switch filepath.Ext(path) {
		case ".go":
			return numbersOf(path, written)
		case ".sql":
			text, err := os.ReadFile(path)
			for _, digits := range numberOfFive.FindAllString(string(text), -1) {
				n, _ := strconv.Atoi(digits)
				written[n] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for number, row := range table() {
		if !written[number] {
			t.Errorf("nothing raises %d (%s): raise it where SQL Server does, or take its row away", number, row.text)
		}
	}
}

func numbersOf(path string, written map[int]bool) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.INT {
			if number, err := strconv.Atoi(literal.Value); err == nil {
				written[number] = true
			}
		}
		return true
	})
	return nil
}
