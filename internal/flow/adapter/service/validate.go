package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

// validate refuses a body that is not what its message type asks for. The broker would take it, and send back an Error, which nobody waits
// for: the message would be lost. demands has what types ask for, as far as it is known.
func validate(ctx context.Context, tx pgx.Tx, messageType string, body []byte, demands map[string]string) error {
	demand, ok := demands[messageType]
	if !ok {
		err := tx.QueryRow(ctx, "select t.validation from parley.service_message_types as t where t.name = $1", messageType).Scan(&demand)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%w: message type %q; create it, or grant the role of the host VIEW DEFINITION on it",
				errNotSeen, messageType)
		case err != nil:
			return fmt.Errorf("find message type %q: %w", messageType, err)
		}
		demands[messageType] = demand
	}
	isGood := true
	var err error
	switch {
	case demand == "E":
		isGood = len(body) == 0
	case demand == "X" && len(body) > 0:
		isGood, err = isGoodText(ctx, tx, "select pg_catalog.xml_is_well_formed_document($1::text) is true", body)
	case demand == "J":
		isGood, err = isGoodText(ctx, tx, "select $1::text::jsonb is not null", body)
	}
	if err != nil {
		return fmt.Errorf("validate the body for message type %q: %w", messageType, err)
	}
	if !isGood {
		return &adapter.Failure{
			Code: "send.refused", Permanent: true,
			Err: fmt.Errorf("the body is not what message type %q asks for (%s)", messageType, demandWords[demand]),
		}
	}
	return nil
}

// isGoodText asks the database about a body that has to be text of at most validatedBytesMax bytes. An error of the text is one of
// class 22, which refuses the message.
func isGoodText(ctx context.Context, tx pgx.Tx, query string, body []byte) (isGood bool, err error) {
	text, isText := parley.BodyText(body)
	if !isText || len(body) > validatedBytesMax {
		return false, nil
	}
	err = tx.QueryRow(ctx, query, text).Scan(&isGood)
	return isGood, err
}

// validatedBytesMax is the size of the largest body that the broker parses.
const validatedBytesMax = 16 << 20

var demandWords = map[string]string{"E": "none", "X": "well-formed XML", "J": "JSON"}
