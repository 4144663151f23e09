package broker

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/calls"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A parameter gives the text of an argument of a call, nil for NULL.
type parameter func(frame *expression.Frame) ([]byte, *fault.Error)

// A call is a call of a function of the schema parley under construction: its arguments by name.
type call struct {
	verb       string // the statement, for errors of rights
	queue      string // the queue as the batch writes it, for error 208
	statement  string // in the list of calls, where it is not the verb
	object     string // that the statement defines, for errors that name it
	arguments  []string
	parameters []parameter
}

// with adds an argument; kind is the type in the database.
func (c *call) with(name, kind string, p parameter) *call {
	return c.withSQL(name, "$#::"+kind, p)
}

// withSQL adds an argument that is an expression of SQL, in which $# stands for the parameter.
func (c *call) withSQL(name, sql string, p parameter) *call {
	c.parameters = append(c.parameters, p)
	place := "$" + strconv.Itoa(len(c.parameters))
	c.arguments = append(c.arguments, name+" => "+strings.ReplaceAll(sql, "$#", place))
	return c
}

// fixed adds an argument that is always the same.
func (c *call) fixed(name, sql string) *call {
	c.arguments = append(c.arguments, name+" => "+sql)
	return c
}

func (c *call) text() string {
	statement := c.statement
	if statement == "" {
		statement = c.verb
	}
	return calls.Text(statement, c.arguments...)
}

// values evaluates the parameters.
func (c *call) values(frame *expression.Frame) ([][]byte, *fault.Error) {
	values := make([][]byte, len(c.parameters))
	for i, p := range c.parameters {
		v, err := p(frame)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// do gives the statement that makes a call and takes nothing from it.
func (c *compiler) do(called *call) *statement {
	return c.ask(called, nil)
}

// doLater gives the same of a statement that may wait for the next one.
func (c *compiler) doLater(called *call) *statement {
	s := c.ask(called, nil)
	sql := "select from " + called.text()
	s.later = func(frame *expression.Frame) *fault.Error {
		values, err := called.values(frame)
		if err != nil {
			return err
		}
		c.translator.connection.Defer(connection.Statement{SQL: sql, Parameters: values}, called.fault)
		return nil
	}
	return s
}

// ask gives the statement that makes a call; take gets its result, nil for NULL.
func (c *compiler) ask(called *call, take func(frame *expression.Frame, result []byte) *fault.Error) *statement {
	// A condition keeps the result out of the answer where it is of no use.
	sql := "select from " + called.text()
	if take != nil {
		sql = "select " + called.text()
	}
	return &statement{run: func(ctx context.Context, frame *expression.Frame, _ session.Sink) (int64, bool, *fault.Error) {
		values, err := called.values(frame)
		if err != nil {
			return 0, false, err
		}
		var result []byte
		sent := connection.Statement{SQL: sql, Parameters: values, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			if len(row) > 0 && row[0] != nil {
				result = append([]byte{}, row[0]...)
			}
			return nil
		}}
		if _, refused := c.translator.connection.Run(ctx, sent); refused != nil {
			return 0, false, called.fault(refused)
		}
		if take != nil {
			return 0, false, take(frame, result)
		}
		return 0, false, nil
	}}
}

// constant gives a text that the batch says.
func constant(text string) parameter {
	return func(*expression.Frame) ([]byte, *fault.Error) { return []byte(text), nil }
}

// named gives a name that is written or that a variable holds.
func (c *compiler) named(n ast.Named) (parameter, *fault.Error) {
	if n.Variable == "" {
		return constant(n.Name.Object()), nil
	}
	return c.expression(&ast.Variable{ExpressionAt: ast.ExpressionAt{Place: n.Place}, Name: n.Variable}, nameType)
}

var (
	nameType       = value.Sized(value.NVarChar, 256)
	handleType     = value.Of(value.UniqueIdentifier)
	intType        = value.Of(value.Int)
	unboundedBytes = value.Sized(value.VarBinary, value.Max)
	unboundedText  = value.Sized(value.NVarChar, value.Max)
)

// expression gives an expression of the batch as a type.
func (c *compiler) expression(node ast.Expression, as value.Type) (parameter, *fault.Error) {
	e, err := expression.CompileAs(node, as, c.scope)
	if err != nil {
		return nil, err
	}
	return func(frame *expression.Frame) ([]byte, *fault.Error) {
		v, err := e.Evaluate(frame)
		if err != nil {
			return nil, err
		}
		return encoded(v), nil
	}, nil
}

// encoded gives a value in the text format of PostgreSQL.
func encoded(v value.Value) []byte {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == value.UniqueIdentifier:
		uuid := v.UUID()
		return []byte(hex.EncodeToString(uuid[:]))
	case v.Kind().IsBinary():
		return bytea(v.Raw())
	case v.Kind().IsInteger() || v.Kind() == value.Bit:
		return strconv.AppendInt(nil, v.Int64(), 10)
	}
	return []byte(v.Raw())
}

func bytea(bytes string) []byte {
	text := make([]byte, 2+hex.EncodedLen(len(bytes)))
	copy(text, `\x`)
	hex.Encode(text[2:], []byte(bytes))
	return text
}

// slot gives the slot and the type of a variable that a statement assigns to.
func (c *compiler) slot(name string) (int, value.Type, *fault.Error) {
	slot, t, known := c.scope.Variable(name)
	if !known {
		return 0, value.Type{}, fault.New(137, name)
	}
	return slot, t, nil
}

// assign gives what stores a handle in a variable.
func (c *compiler) assign(variable string) (func(frame *expression.Frame, handle []byte) *fault.Error, *fault.Error) {
	slot, t, err := c.slot(variable)
	if err != nil {
		return nil, err
	}
	if err := value.CheckAssignable(handleType.Kind, t.Kind); err != nil {
		return nil, err
	}
	return func(frame *expression.Frame, handle []byte) *fault.Error {
		v, err := frame.Context.Settings.Assign(decoded(handleType, handle), t)
		if err == nil {
			frame.Variables[slot] = v
		}
		return err
	}, nil
}

// decoded gives a value of a column from the text format of PostgreSQL.
func decoded(t value.Type, text []byte) value.Value {
	switch {
	case text == nil:
		return value.Null(t)
	case t.Kind == value.UniqueIdentifier:
		stored, _ := value.ParseIdentifier(string(text))
		return value.NewIdentifier(stored)
	case t.Kind.IsBinary():
		bytes := make([]byte, hex.DecodedLen(max(len(text)-2, 0)))
		if len(text) > 2 {
			_, _ = hex.Decode(bytes, text[2:])
		}
		return value.BytesOf(t, string(bytes))
	case t.Kind.IsInteger():
		n, _ := strconv.ParseInt(string(text), 10, 64)
		return value.Integer(t.Kind, n)
	}
	return value.TextOf(t, string(text))
}
