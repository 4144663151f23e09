package schema

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Definition is a version of the schema that a test makes up.
type Definition struct{ d definition }

// CurrentDefinition is the one that this package carries.
func CurrentDefinition() Definition { return Definition{currentDefinition()} }

// Next is a version after d: with another file of SQL, with files of d replaced, and with the migration that leads to it.
func (d Definition) Next(release string, files map[string]string, migration string) Definition {
	next := d.d
	next.version++
	next.release = release
	next.files = slices.Clone(next.files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := sqlFile{name: name, text: files[name]}
		if i := slices.IndexFunc(next.files, func(f sqlFile) bool { return f.name == name }); i >= 0 {
			next.files[i] = file
		} else {
			next.files = append(next.files, file)
		}
	}
	next.migrations = append(slices.Clone(next.migrations[:d.d.version]), sqlFile{name: "migration", text: migration})
	return Definition{next}
}

// WithVersion is d under another number.
func (d Definition) WithVersion(version int) Definition {
	d.d.version = version
	return d
}

func (d Definition) Install(ctx context.Context, conn *pgx.Conn) error { return d.d.install(ctx, conn) }

func (d Definition) Upgrade(ctx context.Context, conn *pgx.Conn) error {
	return d.d.upgrade(ctx, conn, false)
}

func (d Definition) Verify(ctx context.Context, conn *pgx.Conn) ([]Difference, error) {
	return d.d.verify(ctx, conn)
}

// Repeatable reports whether an upgrade repeats a statement of sql/.
func Repeatable(statement string) bool {
	_, ok := repeatable(statement)
	return ok
}
