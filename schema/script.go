package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/trusted"
)

// Script returns what [Install] does as one plain SQL script, for people who install with tools of their own.
// It is one transaction, and fails as a whole when schema parley exists.
func Script() string {
	return currentDefinition().script()
}

func (d definition) script() string {
	var script strings.Builder
	fmt.Fprintf(&script, scriptHead, d.release, d.version)
	script.WriteString("begin;\n" + settings)
	fmt.Fprintf(&script, "select pg_advisory_xact_lock(%d);\n\n", int64(installationLock))
	script.WriteString("-- Nothing that somebody else has made is taken for ours.\n" + trusted.SQL() + "\n")
	for _, file := range slices.Concat(d.files, []sqlFile{d.versionRow()}) {
		fmt.Fprintf(&script, "-- %s\n\n%s\n", file.name, strings.TrimSpace(file.text)+"\n")
	}
	script.WriteString("commit;\n")
	return script.String()
}

const scriptHead = `-- Parley %s, Service Broker for PostgreSQL: schema version %d.
--
-- Run it as any role that may create schemas in the database:
--   psql --set ON_ERROR_STOP=1 --file parley.sql
-- It is one transaction: all of it happens or nothing. To change an installed schema, use parley upgrade.

`
