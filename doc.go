// Package parley is the Go face of Parley, Service Broker for PostgreSQL. Services hold conversations that are ordered, durable and
// delivered exactly once, and every send and receive is part of the same transaction as the application's own data.
//
// # The broker is in the database
//
// Everything that matters happens in the functions of the schema parley, which any client in any language may call.
// This package calls those that programs need ([BeginDialog], [Send], [Receive], [EndConversation] and so on), and runs
// the loop that most programs need around them ([Consumer]). The package schema beside it installs, upgrades and verifies
// the schema; the package operate defines queues and services, shows what goes on, diagnoses and repairs.
//
// # Words
//
// A service is a name that conversations are begun from and addressed to; it keeps what arrives in its queue. A dialog
// is a conversation between two services. Each side knows it by a handle of its own. Messages of one direction of a
// conversation arrive in the order in which they were sent, each of them once. Each side's conversation is in a
// conversation group; whoever receives from a group has it locked until his transaction ends, so that related messages
// are never worked on by two at a time. A contract says which message types a conversation may carry.
//
// # Transactions
//
// Statements take a [DB]: give them a transaction to make them one with other work. Their effect, sending and receiving included, is seen
// by others when the transaction commits, and has never happened when it rolls back.
//
//	tx, err := pool.Begin(ctx)
//	...
//	messages, err := parley.Receive(ctx, tx, "OrderQueue")
//	... // the application's own tables, replies with parley.Send
//	err = tx.Commit(ctx)
//
// # Ending
//
// A conversation lives until both sides have ended it. A program that gets an EndDialog or an Error message ends its side too; a [Consumer]
// does that by itself. Then nothing can be sent to the far side any more.
//
// # Errors
//
// An error that the broker raises is an [Error], with the number that SQL Server gives to the same mistake; see
// [ErrorNumber]. All others are those of pgx.
//
// # Poolers
//
// Nothing here keeps state in a session, so a pooler in transaction mode such as PgBouncer may stand between, as far as
// pgx is set not to prepare statements (default_query_exec_mode=exec in the connection string). Only waking by
// notifications needs a direct connection; see [Consumer].
package parley
