package reference

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
	"github.com/parley-broker/parley/sql"
)

// An object is a function, a procedure, a view or a type of the interface.
type object struct {
	file      string
	kind      string // function, view or type; a procedure counts as a function
	schema    string
	name      string // without the schema
	signature string // of a function, as the source writes it
	comment   string
}

// fullName is the name with the schema.
func (o object) fullName() string { return o.schema + "." + o.name }

// schemas is an expression for those of the wings.
var schemas = strings.Join(sql.OwnSchemas(), "|")

var (
	creation   = regexp.MustCompile(`(?s)^create (function|procedure|view|type) (` + schemas + `)\.("?[a-z0-9_]+"?)(.*)$`)
	commenting = regexp.MustCompile(`(?s)^comment on (function|procedure|view|type) (` + schemas + `)\.` +
		`("?[a-z0-9_]+"?)(?:\([^)]*\))? is\s+'(.*)'$`)
	endOfHeader = regexp.MustCompile(`\nlanguage `)
	// The argument that proves the caller is left out by whoever calls, and so by the page.
	callerArgument = regexp.MustCompile(`,?\s*caller parley\.caller default parley\.current_caller\(\)`)
)

// readSource reads what the files create for everybody, in their order.
func readSource(files fs.FS) ([]object, error) {
	var public []object
	names, err := sql.Manifest(files)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read a file of the schema: %w", err)
		}
		statements, err := sqltext.Split(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		public = append(public, readStatements(name, statements)...)
	}
	return public, nil
}

func kindOf(word string) string {
	if word == "procedure" {
		return "function"
	}
	return word
}

// readStatements relies on a comment following what it is on, which a rule of the schema demands.
func readStatements(file string, statements []sqltext.Statement) []object {
	var public []object
	for _, statement := range statements {
		if found := creation.FindStringSubmatch(statement.Text); found != nil {
			kind, schema, name, rest := kindOf(found[1]), found[2], strings.Trim(found[3], `"`), found[4]
			o := object{file: file, kind: kind, schema: schema, name: name}
			if kind == "function" {
				o.signature = schema + "." + found[3] + rest
				if end := endOfHeader.FindStringIndex(o.signature); end != nil {
					o.signature = o.signature[:end[0]]
				}
				o.signature = callerArgument.ReplaceAllString(o.signature, "")
			}
			public = append(public, o)
			continue
		}
		if found := commenting.FindStringSubmatch(statement.Text); found != nil {
			kind, schema, name, text := kindOf(found[1]), found[2], strings.Trim(found[3], `"`), strings.ReplaceAll(found[4], "''", "'")
			for i := range public {
				if o := &public[i]; o.kind == kind && o.schema == schema && o.name == name && o.comment == "" {
					o.comment = text
					break
				}
			}
		}
	}
	return slices.DeleteFunc(public, func(o object) bool { return strings.HasPrefix(o.name, "_p_") })
}
