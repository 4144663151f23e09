package sql

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Wing is a system with a schema of its own, as a line of the file wings states it.
type Wing struct {
	Name        string
	Schema      string
	UserSchemas []string // hold objects that are made for users, such as the views of their queues
	Folders     []string // in sql/, with those below them
	Calls       []string // wings whose interface it may use
	IsForUsers  bool     // or else for the owner of the schema alone
}

// Schemas gives the wing's own schema, and then those that hold objects of users.
func (w Wing) Schemas() []string { return append([]string{w.Schema}, w.UserSchemas...) }

// Has reports whether a file of the manifest belongs to the wing.
func (w Wing) Has(file string) bool {
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if slices.Contains(w.Folders, folder) {
			return true
		}
	}
	return false
}

// wings is apart from the files of the schema, so that a program that installs nothing does not carry them.
//
//go:embed wings
var wings string

// Wings gives the systems of this package, in the order in which they are installed.
var Wings = sync.OnceValue(func() []Wing {
	wings, err := ReadWings(wings)
	if err != nil {
		panic(err) // A test reads them.
	}
	return wings
})

// Schemas gives all schemas of the wings.
func Schemas() []string {
	var schemas []string
	for _, w := range Wings() {
		schemas = append(schemas, w.Schemas()...)
	}
	return schemas
}

// OwnSchemas gives the schemas of the wings without those that hold objects of users.
func OwnSchemas() []string {
	var schemas []string
	for _, w := range Wings() {
		schemas = append(schemas, w.Schema)
	}
	return schemas
}

// UserSchemas gives the schemas that hold objects of users.
func UserSchemas() []string {
	schemas := []string{}
	for _, w := range Wings() {
		schemas = append(schemas, w.UserSchemas...)
	}
	return schemas
}

// SchemaLiteral gives all schemas of the wings as a literal of SQL, an array of text.
func SchemaLiteral() string { return "'{" + strings.Join(Schemas(), ",") + "}'" }

// schemaName needs no quoting in SQL.
var schemaName = regexp.MustCompile(`^[a-z_]+$`)

// ReadWings reads the file wings.
//
// Errors: a line without five fields, a name of a schema that would need quotes, a call of a wing that does not come before.
func ReadWings(file string) ([]Wing, error) {
	var wings []Wing
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		w, err := readWing(line, wings)
		if err != nil {
			return nil, fmt.Errorf("wings: %q: %w", line, err)
		}
		wings = append(wings, w)
	}
	return wings, nil
}

// readWing reads a line.
func readWing(line string, before []Wing) (Wing, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return Wing{}, fmt.Errorf("it has %d fields: name, schema, folders, calls and for are needed", len(fields))
	}
	schemas := strings.Split(fields[1], ",")
	for _, schema := range schemas {
		if !schemaName.MatchString(schema) {
			return Wing{}, fmt.Errorf("schema %q: use lower case letters and _", schema)
		}
	}
	w := Wing{Name: fields[0], Schema: schemas[0], UserSchemas: schemas[1:], Folders: strings.Split(fields[2], ",")}
	if fields[3] != "-" {
		w.Calls = strings.Split(fields[3], ",")
	}
	for _, called := range w.Calls {
		if !slices.ContainsFunc(before, func(b Wing) bool { return b.Name == called }) {
			return Wing{}, fmt.Errorf("it calls %q, which does not come before it", called)
		}
	}
	switch fields[4] {
	case "users":
		w.IsForUsers = true
	case "owner":
	default:
		return Wing{}, fmt.Errorf("for %q: write users or owner", fields[4])
	}
	return w, nil
}
