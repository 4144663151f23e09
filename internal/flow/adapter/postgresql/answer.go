package postgresql

import (
	"bytes"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// answers gives deliveries what the statements of a batch have given: the first row of each. results begin with that of the savepoint.
func (s *sender) answers(ready []prepared, results []*pgconn.Result, deliveries []adapter.Delivery) (refused error) {
	if !s.Responds {
		return nil
	}
	for i, p := range ready {
		answer, err := answerOf(results[i+1])
		if err != nil {
			return refusal(err)
		}
		deliveries[p.index].Answer = answer
	}
	return nil
}

// oidVoid is the type of functions that give nothing.
const oidVoid = 2278

// answerOf gives the first row of a result as an answer: its only column as it is, several as an object; nil where there is no row, or
// null in it.
func answerOf(result *pgconn.Result) (*adapter.Input, error) {
	if len(result.Rows) == 0 || len(result.FieldDescriptions) == 0 || result.FieldDescriptions[0].DataTypeOID == oidVoid {
		return nil, nil
	}
	values := row(result.Rows[0])
	input := &adapter.Input{Promoted: map[string]any{}, Written: map[string]any{}, ContentType: applicationJSON, Charset: "utf-8"}
	var err error
	if len(values) == 1 {
		if values[0] == nil {
			return nil, nil
		}
		input.Body, input.ContentType, input.Charset, err = bodyOf(result.FieldDescriptions[0].DataTypeOID, bytes.Clone(values[0]))
	} else {
		input.Body, err = (&mapping{set: &rowSet{columns: result.FieldDescriptions}}).object(values)
	}
	if input.Body == nil {
		input.Body = []byte{}
	}
	input.Size = int64(len(input.Body))
	return input, err
}
