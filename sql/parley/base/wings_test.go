package base_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/sql"
)

func TestWingsAreThoseThatAreInstalled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	sqltest.Equal(b.Session, strings.Join(sql.Schemas(), " "), `
		select string_agg(n.nspname, ' ' order by n.oid) from pg_namespace as n where n.nspname = 'parley' or n.nspname like 'parley\_%'`)
}
