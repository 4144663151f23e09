package parley_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// A consumer works on a queue until its context ends, in a program typically on a signal.
func ExampleConsumer() {
	ctx, pool, done := exampleDatabase()
	defer done()
	_, err := pool.Exec(ctx, `
		select parley.create_queue('LogQueue');
		select parley.create_service('Log', 'LogQueue', array['DEFAULT']);
		create table log (line text not null)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(ctx)
	consumer := parley.Consumer{
		Pool:    pool,
		Queue:   "LogQueue",
		Readers: 4,
		Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
			for _, message := range messages {
				fmt.Printf("%s\n", message.MessageBody)
				if _, err := tx.Exec(ctx, "insert into log values ($1)", string(message.MessageBody)); err != nil {
					return err
				}
				if string(message.MessageBody) == "goodbye" {
					stop()
				}
			}
			return nil
		},
	}

	handle, err := parley.BeginDialog(ctx, pool, "Log", "Log")
	if err != nil {
		panic(err)
	}
	if err := parley.SendBatch(ctx, pool, handle, parley.DefaultMessageType, [][]byte{[]byte("hello"), []byte("goodbye")}); err != nil {
		panic(err)
	}
	if err := consumer.Run(ctx); err != nil {
		panic(err)
	}

	// Output:
	// hello
	// goodbye
}
