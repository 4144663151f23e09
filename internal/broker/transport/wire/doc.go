// Package wire turns batches, results and fragments into the frames of the protocol between brokers, and back.
//
// Terms. A frame is what a stream carries: a kind, the number that ties an answer to its question, and a payload, which may be
// compressed. The payload is one message of wire.proto in package pb. docs/reference/protocol.md describes all of it.
//
// Everything that is decoded comes from outside and is believed in nothing: each length, count, number, text and reference is checked
// against the limits of this package before the broker sees it. A payload that does not pass is [ErrMalformed]. Decoding never panics. Its
// allocations are bounded by the length of the payload and by the limits: counts are checked before anything is made room for.
//
// The same checks hold for what is encoded, so that a run that no peer would take is refused here, with the reason, and not sent
// again and again.
package wire
