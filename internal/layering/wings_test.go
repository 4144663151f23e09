package layering

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/sql"
)

// schemaLists finds two schemas of the wings side by side, as names, as values or as oids.
func schemaLists() *regexp.Regexp {
	schema := `["']?\b(?:` + strings.Join(sql.Schemas(), "|") + `)\b["']?(?:::regnamespace)?`
	return regexp.MustCompile(schema + `(?:\s*,\s*|\s+and\s+)` + schema + `(?:[^.\w]|$)`)
}

// The file sql/wings alone lists the schemas, so that a new wing is everywhere at once. A wing's own SQL names its own.
func TestSchemasAreListedInTheFileOfWingsAlone(t *testing.T) {
	t.Parallel()
	list := schemaLists()
	for _, path := range paths(t, ".go", ".sql") {
		file, isOfSQL := strings.CutPrefix(path, "sql/")
		isOfAWing := isOfSQL && filepath.Ext(path) == ".sql" && slices.ContainsFunc(sql.Wings(), func(w sql.Wing) bool { return w.Has(file) })
		if isOfAWing || strings.HasPrefix(path, "internal/layering/") {
			continue
		}
		if found := list.FindString(read(t, path)); found != "" {
			t.Errorf("%s lists schemas, %q: take them from sql.Schemas, sql.OwnSchemas or a wing of sql.Wings", path, found)
		}
	}
}

func TestListsOfSchemasAreFound(t *testing.T) {
	t.Parallel()
	list := schemaLists()
	for text, want := range map[string]bool{
		"in ('parley', 'parley_mail')":                           true,
		"{\"parley_store\",\n \"parley_mail\"}":                  true,
		"('parley'::regnamespace, 'parley_queue'::regnamespace)": true,
		"drop schema parley, parley_queue cascade":               true,
		"the schemas parley_store and parley_mail":               true,
		"parley.put_work(1), parley_mail.send()":                 false,
		"from parley_store._p_item as i, parley_mail._p_message": false,
		"the schema parley, and another one":                     false,
	} {
		if list.MatchString(text) != want {
			t.Errorf("%q: got %v, want %v", text, !want, want)
		}
	}
}
