package broker

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// Function gives GET_TRANSMISSION_STATUS: why the last message of a conversation is not with its target yet, empty where none waits.
func (t *Translator) Function(name string) (*function.Function, bool) {
	if name != "GET_TRANSMISSION_STATUS" {
		return t.Translator.Function(name)
	}
	return &function.Function{
		Name: name, Parameters: "a", IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) {
			return value.Sized(value.NVarChar, value.MaxUnicode), nil
		},
		Call: func(c *function.Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			handle, err := c.Settings.Assign(arguments[0], handleType)
			if err != nil {
				return value.Value{}, err
			}
			called := (&call{verb: name}).
				with("conversation_handle", "uuid", func(*expression.Frame) ([]byte, *fault.Error) { return encoded(handle), nil })
			status := value.Null(result)
			_, refused := t.connection.Run(context.Background(), connection.Statement{
				SQL: "select " + called.text(), Parameters: [][]byte{encoded(handle)},
				Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
					status = decoded(result, row[0])
					return nil
				},
			})
			if refused != nil {
				return value.Value{}, called.fault(refused)
			}
			return status, nil
		},
	}, true
}
