package parley_test

import (
	"errors"
	"fmt"

	"github.com/parley-broker/parley"
)

// Errors of the broker carry the number that SQL Server gives to the same mistake, and state what to do.
func ExampleErrorNumber() {
	ctx, pool, done := exampleDatabase()
	defer done()

	handle, err := parley.ParseUUID("11111111-2222-3333-4444-555555555555")
	if err != nil {
		panic(err)
	}
	err = parley.Send(ctx, pool, handle, parley.DefaultMessageType, []byte("anybody there?"))
	if number, ok := parley.ErrorNumber(err); ok && number == parley.ConversationNotFound {
		fmt.Println("the conversation is over")
	}
	if broker, ok := errors.AsType[*parley.Error](err); ok {
		fmt.Println("hint:", broker.Hint)
	}

	// Output:
	// the conversation is over
	// hint: See parley.conversation_endpoints; begin a new dialog to go on.
}
