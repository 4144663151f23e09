package postgresql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/pgdb"
)

// definitionClasses are those of errors that every message would meet: rights, names, connections, a server that is read-only or goes down.
var definitionClasses = []string{"08", "25", "28", "3D", "3F", "42", "53", "57", "58"}

// judge says what follows an error of the database.
func (s *sender) judge(err error) error {
	if _, ok := errors.AsType[*adapter.Failure](err); ok {
		return err
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return &adapter.Failure{Code: "send.unreachable", Err: err, Unreachable: !errors.Is(err, context.Canceled)}
	}
	cause := describe(refused)
	class := refused.Code[:min(2, len(refused.Code))]
	if !slices.Contains(s.settings.Retried, class) && !slices.Contains(s.settings.Retried, refused.Code) {
		return refusal(cause)
	}
	// A statement that took too long, and one that was cancelled, say nothing about the others.
	isOfAll := slices.Contains(definitionClasses, class) && refused.Code != "57014"
	return &adapter.Failure{Code: "send.transport", Err: cause, Unreachable: isOfAll}
}

// refusal is a failure that no repeat mends.
func refusal(err error) error {
	return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
}

// describe gives an error of the database without its DETAIL, which shows values of rows to those who may not read bodies.
func describe(err *pgconn.PgError) error {
	text := err.Message
	for _, named := range []struct{ what, name string }{
		{"table", strings.Trim(err.SchemaName+"."+err.TableName, ".")}, {"column", err.ColumnName}, {"constraint", err.ConstraintName},
	} {
		if named.name != "" && !strings.Contains(text, named.name) {
			text += fmt.Sprintf(", %s %s", named.what, named.name)
		}
	}
	if err.Hint != "" {
		text += ". " + err.Hint
	}
	return fmt.Errorf("the database refused it: %s (SQLSTATE %s)", pgdb.Storable(text), err.Code)
}
