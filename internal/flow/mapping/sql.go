package mapping

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
)

// qualified is the name of a function with its schema: it is not searched for.
var qualified = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_$]*|"(?:[^"]|"")+")\.([A-Za-z_][A-Za-z0-9_$]*|"(?:[^"]|"")+")$`)

// runSQL calls a function of the database, in the transaction of the place and with the rights of its role.
func (m *Maps) runSQL(ctx context.Context, name string, d *Definition, inputs []Input) (Output, error) {
	if m.place == nil {
		return Output{}, inMap(name, &fault.Fault{
			Message: "a map in SQL needs the database", Remedy: "apply it, and have a port or an orchestration use it",
		})
	}
	if !qualified.MatchString(d.Function) {
		return Output{}, inMap(name, faultOfFunction(d.Function))
	}
	bodies := make([]string, len(inputs))
	for i, in := range inputs {
		b, err := in.gather(ctx)
		if err != nil {
			return Output{}, err
		}
		text, err := b.Bytes()
		if err := errors.Join(err, b.Close()); err != nil {
			return Output{}, err
		}
		bodies[i] = string(text)
	}
	made, err := m.call(ctx, d, bodies)
	if err != nil {
		return Output{}, inMap(name, err)
	}
	if made == nil {
		return Output{}, inMap(name, &fault.Fault{
			Message: fmt.Sprintf("function %s has refused the message: it gave null", d.Function), Remedy: "mend the message, or the function",
		})
	}
	out := Output{Body: &Body{}, Type: d.Target, ContentType: "application/xml", Charset: "utf-8"}
	if trimmed := strings.TrimLeft(*made, " \t\r\n"); !strings.HasPrefix(trimmed, "<") {
		out.ContentType = "application/json"
	}
	if _, err := out.Body.Write([]byte(*made)); err != nil {
		return Output{}, errors.Join(err, out.Body.Close())
	}
	return out, nil
}

// call calls the function behind a savepoint, to which the transaction goes back: the function reads alone, and role and settings are again
// what they were.
func (m *Maps) call(ctx context.Context, d *Definition, bodies []string) (made *string, err error) {
	savepoint, err := m.place.Tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("set a savepoint: %w", err)
	}
	_, err = savepoint.Exec(ctx, fmt.Sprintf("set local transaction_read_only = on; set local statement_timeout = '%ds'",
		cmpOr(d.TimeoutS, defaultTimeoutS)))
	if err == nil {
		_, err = adapter.Endpoint{Role: m.place.Role}.AsRole(ctx, savepoint)
	}
	if err == nil {
		places := make([]string, len(bodies))
		arguments := make([]any, len(bodies))
		for i := range bodies {
			places[i], arguments[i] = fmt.Sprintf("$%d", i+1), bodies[i]
		}
		// The parameters have no type of their own, so that the function may take text, xml, json or jsonb.
		err = savepoint.QueryRow(ctx, fmt.Sprintf("select (%s(%s))::text", d.Function, strings.Join(places, ", ")), arguments...).Scan(&made)
	}
	if rollback := savepoint.Rollback(ctx); rollback != nil {
		return nil, errors.Join(err, rollback)
	}
	return made, faultOfSQL(d.Function, err)
}

// faultOfSQL makes a fault of an error of the function. One of the connection or of the server is none.
func faultOfSQL(function string, err error) error {
	if err == nil {
		return nil
	}
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is || strings.HasPrefix(refused.Code, "08") || strings.HasPrefix(refused.Code, "53") || strings.HasPrefix(refused.Code, "40") ||
		strings.HasPrefix(refused.Code, "58") || strings.HasPrefix(refused.Code, "57P") {
		return fmt.Errorf("call function %s: %w", function, err)
	}
	f := &fault.Fault{
		Message: fmt.Sprintf("function %s: %s (SQLSTATE %s)", function, refused.Message, refused.Code), Err: err,
		Remedy: "mend the message, or the function",
	}
	switch {
	case refused.Code == "25006":
		f.Remedy = "have the function read alone: what it writes would not go with the message"
	case refused.Code == "42883":
		f.Remedy = "make a function of one argument of type text, xml, json or jsonb for each input"
	case refused.Code == "42501":
		f.Remedy = "grant the role of the host execute on the function, and usage of its schema"
	case refused.Code == "57014":
		f.Remedy = "raise timeout_s of the map, or have the function do less"
	case refused.Hint != "":
		f.Remedy = refused.Hint
	}
	if refused.Detail != "" {
		f.Message += ": " + refused.Detail
	}
	return f
}

func faultOfFunction(function string) *fault.Fault {
	return &fault.Fault{
		Message: fmt.Sprintf("the function %q has no name with its schema", function),
		Remedy:  "name it as schema.function, such as app.map_order",
	}
}
