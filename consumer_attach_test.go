package parley_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// Readers of a copy would do the work of the original again.
func TestConsumerDoesNotWorkOnACopyBeforeItMay(t *testing.T) {
	t.Parallel()
	original := parleytest.Database(t)
	fixture.Execute(t, original, fixture.Talk)
	copied := fixture.Copy(t, original)
	consumer := parley.Consumer{Pool: copied, Queue: "answering", Handler: func(context.Context, pgx.Tx, []parley.Message) error {
		t.Error("a message of the original was handled")
		return nil
	}}
	fixture.RequireIs(t, consumer.Run(t.Context()), parley.ErrBrokerElsewhere)
}
