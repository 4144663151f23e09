// Package send takes messages to the hosts that are next on their way, by SMTP or LMTP.
//
// Terms. A [Connection] is one session with one host, kept for several messages. A [Result] says what became of one recipient: delivered,
// deferred, failed, or unknown, when the connection died between the last byte of the message and the reply. A [TLSPolicy] says how much
// the connection has to prove. The [Dispatcher] takes what waits in the queues to their next hops, and reports the results in batches.
//
// The database owns the truth: which message waits for which hop, how often it was tried, when it is tried again. The dispatcher holds
// its claimed messages under a lease; when that has run out its results are refused, and the message is tried again.
//
// Sources: RFC 5321, RFC 2033 (LMTP), RFC 3207 (STARTTLS), RFC 3461 (DSN), RFC 7672 (DANE), RFC 8461 (MTA-STS),
// spec/hub-transport.md sections 11 and 12.
package send
