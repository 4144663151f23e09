// Package webhook delivers the messages of a queue to a web address.
//
// A reader claims the next message of a conversation that nobody holds and that need not wait, posts it, and receives it when the address
// has accepted it. It claims in one transaction and records in another, and none is open while it waits for the answer; meanwhile it
// renews the lease of its claim, and breaks the request off when that is lost. So a message is delivered at least once: when the daemon
// dies, or the commit after an acceptance fails, it is delivered again, under the same id.
//
// The meaning of an answer ([judge]):
//
//	2xx                          accepted: received, and the reply in the answer is sent, in one transaction
//	408 425 429 502 503 504      not available: the conversation waits; nothing is counted
//	no answer in time            the same
//	410                          will never be accepted: the conversation is set aside
//	anything else                refused: the conversation waits, longer each time, and is set aside after too many
//	no connection at all         the reader fails, and the engine pauses before it starts another
//
// Only the conversation waits; its messages keep their order, and others go on. The database keeps who waits and how often it was refused
// (parley.delivery_failures), since the transaction that failed leaves nothing.
//
// Requests are signed as the Standard Webhooks specification says. Which addresses may be called is for the operator of the
// daemon to say ([Permission]).
package webhook
