package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"sync"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/sqltext"
	"github.com/parley-broker/parley/migrations"
	"github.com/parley-broker/parley/sql"
)

// definition is the schema as one version describes it.
type definition struct {
	version      int
	oldestClient int // version that programs must know at least
	release      string
	files        []sqlFile
	migrations   []sqlFile // by number: migrations[0] leads to version 1
}

// fingerprint is the SHA-256 of all files of the schema, in hexadecimal.
func (d definition) fingerprint() string {
	hash := sha256.New()
	for _, file := range d.files {
		fmt.Fprintf(hash, "%s %d\n%s", file.name, len(file.text), file.text)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// currentFingerprint is that of what this package carries.
var currentFingerprint = sync.OnceValue(func() string { return currentDefinition().fingerprint() })

// sqlFile is a file of SQL, with the name that errors show.
type sqlFile struct {
	name string
	text string
}

// currentDefinition is the definition that this package carries.
var currentDefinition = sync.OnceValue(func() definition {
	return definition{
		version:      parley.SchemaVersion,
		oldestClient: parley.OldestClientVersion,
		release:      parley.Release,
		files:        readSchema(),
		migrations:   readMigrations(),
	}
})

// readSchema reads the schema in the order of its manifest.
func readSchema() []sqlFile {
	names, err := sql.Manifest(sql.Files)
	if err != nil {
		panic(err)
	}
	return readEmbedded(sql.Files, names, "sql/")
}

// readMigrations reads the migrations in the order of their numbers.
func readMigrations() []sqlFile {
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		panic(err)
	}
	return readEmbedded(migrations.Files, names, "migrations/")
}

// readEmbedded reads files that were compiled in; a test sees to it that all are there.
func readEmbedded(files fs.FS, names []string, folder string) []sqlFile {
	read := make([]sqlFile, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		read = append(read, sqlFile{name: folder + name, text: string(text)})
	}
	return read
}

// migrationsFrom lists the migrations that lead from an older version to this one.
func (d definition) migrationsFrom(version int) ([]sqlFile, error) {
	if len(d.migrations) < d.version {
		return nil, fmt.Errorf("migration to schema version %d is missing", len(d.migrations)+1)
	}
	return d.migrations[version:d.version], nil
}

// replaceable lists the statements that may be repeated over an installed schema: what they create holds no data,
// and is replaced in place so that users' own objects may depend on it. A DO block of sql/ must be of this kind.
func (d definition) replaceable() ([]sqlFile, error) {
	var repeated []sqlFile
	for _, file := range d.files {
		statements, err := sqltext.Split(file.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
		for _, statement := range statements {
			if text, ok := repeatable(statement.Text); ok {
				name := fmt.Sprintf("%s, statement of line %d", file.name, statement.Line)
				repeated = append(repeated, sqlFile{name: name, text: text})
			}
		}
	}
	return repeated, nil
}

var (
	createReplaceable = regexp.MustCompile(`(?i)^create\s+(?:or\s+replace\s+)?(function|procedure|view|trigger)\b`)
	repeatableAsIs    = regexp.MustCompile(`(?i)^(comment|do|grant|revoke)\b|^alter\s+(function|procedure|view)\b`)
)

// repeatable gives the form of a statement that may be repeated, if it has one.
func repeatable(statement string) (string, bool) {
	if repeatableAsIs.MatchString(statement) {
		return statement, true
	}
	if createReplaceable.MatchString(statement) {
		return createReplaceable.ReplaceAllString(statement, "create or replace $1"), true
	}
	return "", false
}
