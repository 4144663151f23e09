package runner

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// explained is a Translator whose errors for what is not there say why, as --check does.
type explained struct{ interpreter.Translator }

// Statement compiles a statement, and adds the reason of the table of constructs to error 40510 or 40517.
func (e explained) Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (interpreter.Statement, *fault.Error) {
	compiled, err := e.Translator.Statement(ctx, node, scope)
	if err == nil || err.Number != 40510 && err.Number != 40517 || strings.Contains(err.Message, ": ") {
		return compiled, err
	}
	for _, use := range check.New().Batch(&ast.Batch{Statements: []ast.Statement{node}}) {
		if (use.State == check.Refused || use.State == check.Later) && use.Reason != "" {
			return compiled, err.Because(use.Reason)
		}
	}
	return compiled, err
}
