package expression

import (
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A collation says how COLLATE lets text compare: by the default, or by its letters as they are.
type collation uint8

const exactCollation collation = 1

// collationName is the form of the names of Windows and of SQL Server collations.
var collationName = regexp.MustCompile(`^(?i)[A-Z][A-Z0-9_]*_(CI|CS|BIN|BIN2)(_A[IS](_KS)?(_WS)?(_VSS)?(_SC)?)?(_UTF8)?$`)

// collate compiles COLLATE: a collation with CS or BIN compares letters exactly; error 448 for a name that is none.
func (c *compiler) collate(node *ast.Collate) (*Expression, *fault.Error) {
	e, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	name := strings.ToUpper(node.Collation)
	switch {
	case name == "DATABASE_DEFAULT" || name == "CATALOG_DEFAULT":
		return e, nil
	case !collationName.MatchString(name):
		return nil, fault.New(448, node.Collation)
	case !e.Type.Kind.IsCharacter():
		return nil, fault.New(447, e.Type.Kind)
	}
	named := *e
	if strings.Contains(name, "_CS") || strings.Contains(name, "_BIN") {
		named.collation = exactCollation
	}
	return &named, nil
}

func (c collation) isExact() bool { return c&exactCollation != 0 }

func (c collation) compare(s *value.Settings, a, b value.Value) (int, *fault.Error) {
	if !c.isExact() {
		return s.Compare(a, b)
	}
	return s.CompareExactly(a, b)
}
