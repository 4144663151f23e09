package operate

import (
	"context"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// RecordOperatorAction records that the role changes something, for parley.operator_actions: operation in up to 200 characters,
// objects by their names, detail as JSON or nil. Call it in the transaction of the change.
//
// Errors: a [parley.Error] with number [parley.WrongArgument] when one of them is too long.
func RecordOperatorAction(ctx context.Context, db parley.DB, operation string, objects []string, detail []byte) error {
	if objects == nil {
		objects = []string{}
	}
	call := pgdb.Call{Function: "record_operator_action"}
	call.Give("operation", "text", operation)
	call.Give("objects", "text[]", objects)
	if detail != nil {
		call.Give("detail", "jsonb", string(detail))
	}
	return call.Exec(ctx, db, "record what an operator does")
}
