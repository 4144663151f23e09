package sqlrules_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqlrules"
	"github.com/parley-broker/parley/sql"
)

func TestSchemaKeepsTheRules(t *testing.T) {
	t.Parallel()
	files, err := sqlrules.Read(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("the schema has no files")
	}
	for _, v := range sqlrules.Check(files) {
		t.Error(v)
	}
}
