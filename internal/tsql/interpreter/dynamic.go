package interpreter

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// executeText compiles EXECUTE ('text'): a batch of its own, one level deeper, which sees no variables of this one.
func (c *compiler) executeText(node *ast.Execute) *fault.Error {
	text, err := expression.Compile(node.Text, c)
	if err != nil {
		return err
	}
	if !text.Type.Kind.IsCharacter() {
		return fault.New(206, text.Type.Kind, "ntext")
	}
	role, err := c.roleName(node.AsName)
	if err != nil {
		return err
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		v, err := text.Evaluate(a.frameOf(ctx))
		if err != nil || v.IsNull() {
			return err
		}
		compiled, err := a.session.dynamic(v.Raw(), nil)
		if err != nil {
			return a.session.refused(a, err)
		}
		as, err := role(ctx, a)
		if err != nil {
			return err
		}
		return a.session.callAs(ctx, &module{as: as}, func() *fault.Error { return a.session.callText(ctx, a, compiled, nil, -1) })
	})
	return nil
}

// callText runs a text. USE in it ends with it: the session is then in its database again.
func (s *Session) callText(ctx context.Context, a *activation, p *program, values []argument, result int) *fault.Error {
	database := s.identity.Database
	err := s.call(ctx, a, p, values, result)
	if s.identity.Database == database || s.broken != nil {
		return err
	}
	if bad := s.enter(context.WithoutCancel(ctx), database); bad != nil && err == nil {
		return bad
	}
	return err
}

// dynamic compiles a text that is executed.
func (s *Session) dynamic(text string, parameters []*ast.Parameter) (*program, *fault.Error) {
	parsed, err := parser.Parse(text, parser.Options{StringsInDoubleQuotes: !s.options.quotedIdentifier})
	if err != nil {
		return nil, syntaxFault(err)
	}
	return s.compile("", parameters, parsed.Statements)
}

// refused gives the error of a text that does not compile. It stands one level deeper, so that a TRY around EXECUTE catches it.
func (s *Session) refused(a *activation, err *fault.Error) *fault.Error {
	if !a.isProtected() {
		err.Reach = fault.Statement
		return err
	}
	err.Reach = fault.Statement
	return err
}

// executeParameterized is sp_executesql: a text, the declarations of its parameters, and their values. It returns the @@ERROR of the end of
// the text.
func (s *Session) executeParameterized(ctx context.Context, a *activation, arguments []argument, result int) *fault.Error {
	if len(arguments) == 0 {
		return fault.New(201, "sp_executesql", "@statement")
	}
	var texts [2]string
	for i, name := range []string{"@statement", "@parameters"} {
		if i >= len(arguments) || arguments[i].value == nil {
			break
		}
		if !arguments[i].value.Type.Kind.IsUnicode() && arguments[i].value.Type.Kind != 0 {
			return fault.New(214, name, "ntext/nchar/nvarchar").InState(2+i).At(1, "sp_executesql")
		}
		v, err := arguments[i].value.Evaluate(a.frameOf(ctx))
		if err != nil {
			return err
		}
		texts[i] = v.Raw()
	}
	parameters, err := s.parametersOf(texts[1])
	if err != nil {
		return s.refused(a, err)
	}
	compiled, err := s.dynamic(texts[0], parameters)
	if err != nil {
		return s.refused(a, err)
	}
	if texts[1] != "" {
		compiled.text = "(" + texts[1] + ")" + texts[0]
	}
	var values []argument
	if len(arguments) > 2 {
		values = arguments[2:]
	}
	err = s.callText(ctx, a, compiled, values, -1)
	if err == nil && result >= 0 {
		a.frame.Variables[result], err = s.settings.Assign(value.NewInt(s.lastError), a.program.variables[result])
	}
	return err
}

// parametersOf reads declarations of parameters as those of a procedure.
func (s *Session) parametersOf(text string) ([]*ast.Parameter, *fault.Error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	parsed, err := parser.Parse("create procedure p "+text+" as return", parser.Options{})
	if err != nil {
		return nil, syntaxFault(err)
	}
	procedure, is := parsed.Statements[0].(*ast.Procedure)
	if !is {
		return nil, fault.New(102, text)
	}
	return procedure.Parameters, nil
}
