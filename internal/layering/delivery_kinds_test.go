package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// nameKinds are the files that may name a kind of delivery of mail, with the reason.
var nameKinds = map[string]string{
	"internal/mail/server/kinds.go":    "it says who carries which kind",
	"internal/mail/server/counters.go": "DNS is a group of counters too",
}

// A column in SQL has all that depends on the kind of a delivery, the first word of a queue, so that a new kind needs a row and a carrier.
// The rules for SQL hold that there.
func TestKindsOfDeliveriesAreNamedByTheirCarriersAlone(t *testing.T) {
	t.Parallel()
	kinds := deliveryKinds(read(t, "sql/mail/base/delivery_kinds.sql"))
	if len(kinds) < 7 {
		t.Fatalf("found the kinds %q", kinds)
	}
	for _, name := range paths(t, ".go") {
		isOfMail := strings.HasPrefix(name, "internal/mail/") || strings.HasPrefix(name, "internal/store/mail/") || strings.HasPrefix(name, "internal/daemon/")
		if !isOfMail || strings.HasSuffix(name, "_test.go") || path.Base(path.Dir(name)) == "mailtest" || nameKinds[name] != "" {
			continue
		}
		for _, found := range namedKinds(t, name, read(t, name), kinds) {
			t.Errorf("%s: take what depends on the kind of a delivery from the configuration", found)
		}
	}
}

func TestKindsThatAreNamedAreFound(t *testing.T) {
	t.Parallel()
	kinds := deliveryKinds("values\n  ('DNS', 1, 'mail'),\n  ('SMART_HOST', 2, 'mail');")
	for text, want := range map[string]int{
		`"DNS"`: 1, `"SMART_HOST/" + name`: 1, "`DNS/%s/%s`": 1, `"the DNS"`: 0, `"DNS_NAME"`: 0, `"dns"`: 0,
	} {
		if got := namedKinds(t, "x.go", "package x\n\nvar x, name = "+text+`, ""`, kinds); len(got) != want {
			t.Errorf("%s: found %q, want %d", text, got, want)
		}
	}
}

// deliveryKinds gives the first value of each row that the file of the kinds inserts.
func deliveryKinds(file string) []string {
	var kinds []string
	for _, row := range regexp.MustCompile(`(?m)^  \('([A-Z_]+)', \d`).FindAllStringSubmatch(file, -1) {
		kinds = append(kinds, row[1])
	}
	return kinds
}

// namedKinds gives where a Go file has a text that is a kind or begins like one of its queues.
func namedKinds(t *testing.T, name, source string, kinds []string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && slices.ContainsFunc(kinds, func(kind string) bool { return text == kind || strings.HasPrefix(text, kind+"/") }) {
			found = append(found, files.Position(literal.Pos()).String()+" "+text)
		}
		return true
	})
	return found
}
