package parley_test

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// Two services of one database talk. Creating them is part of the set-up of an application, in SQL.
func Example_dialog() {
	ctx, pool, done := exampleDatabase()
	defer done()
	_, err := pool.Exec(ctx, `
		select parley.create_queue('ShopQueue'), parley.create_queue('WarehouseQueue');
		select parley.create_service('Shop', 'ShopQueue');
		select parley.create_service('Warehouse', 'WarehouseQueue', array['DEFAULT']);
		create table orders (order_id integer primary key, state text not null)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		panic(err)
	}

	// The shop stores an order and sends it: both, or neither.
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values (1, 'ordered')"); err != nil {
			return err
		}
		handle, err := parley.BeginDialog(ctx, tx, "Shop", "Warehouse")
		if err != nil {
			return err
		}
		return parley.Send(ctx, tx, handle, parley.DefaultMessageType, []byte("order 1"))
	})
	if err != nil {
		panic(err)
	}

	// The warehouse receives it, answers, and ends its side of the conversation.
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		messages, err := parley.Receive(ctx, tx, "WarehouseQueue")
		if err != nil {
			return err
		}
		for _, message := range messages {
			fmt.Printf("the warehouse got %q\n", message.MessageBody)
			reply := append([]byte("shipped "), message.MessageBody...)
			if err := parley.Send(ctx, tx, message.ConversationHandle, parley.DefaultMessageType, reply); err != nil {
				return err
			}
		}
		return parley.EndConversation(ctx, tx, messages[0].ConversationHandle)
	})
	if err != nil {
		panic(err)
	}

	// The shop reads the answer, and ends its side too.
	messages, err := parley.Receive(ctx, pool, "ShopQueue")
	if err != nil {
		panic(err)
	}
	for _, message := range messages {
		if !message.IsEndDialog() {
			fmt.Printf("the shop got %q\n", message.MessageBody)
			continue
		}
		if err := parley.EndConversation(ctx, pool, message.ConversationHandle); err != nil {
			panic(err)
		}
		fmt.Println("the conversation is over")
	}

	// Output:
	// the warehouse got "order 1"
	// the shop got "shipped order 1"
	// the conversation is over
}
