package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// levelColumn is a column of recursive common tables that no query of T-SQL sees: how often the table was read for a row.
const levelColumn = "parley_level"

// recursionMark begins the text whose conversion fails at the last level.
const recursionMark = "\x02parley recursion "

// defaultRecursion is the number of levels without OPTION (MAXRECURSION n).
const defaultRecursion = 100

// nextLevel writes the level of a row of the recursive part, as one more result of it. A row beyond the last level fails: error 530.
func (b *builder) nextLevel(recursive *commonTable) string {
	if recursive == nil || recursive.reading == "" {
		return ""
	}
	level := recursive.reading + "." + levelColumn
	most := b.translator.recursion
	if most == 0 {
		return ", " + level + " + 1"
	}
	return ", (case when " + level + " >= " + itoa(most) + " then ('" + recursionMark + itoa(most) + " ' || " + level + ")::integer else " +
		level + " + 1 end)"
}

// recursionOf gives the levels that a statement allows; 0 is no limit.
func recursionOf(node ast.Statement) int {
	var hints []*ast.QueryHint
	switch node := node.(type) {
	case *ast.Select:
		hints = node.Options
	case *ast.Insert:
		hints = node.Options
	case *ast.Update:
		hints = node.Options
	case *ast.Delete:
		hints = node.Options
	case *ast.Merge:
		hints = node.Options
	}
	for _, h := range hints {
		if !strings.HasPrefix(strings.ToUpper(h.Words), "MAXRECURSION") || h.Value == nil {
			continue
		}
		e, err := expression.CompileAs(h.Value, value.Of(value.Int), noVariables{})
		if err != nil {
			continue
		}
		if v, is := e.Constant(); is && !v.IsNull() {
			return int(v.Int64())
		}
	}
	return defaultRecursion
}
