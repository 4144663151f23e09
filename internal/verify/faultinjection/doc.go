// Package faultinjection has peers that misbehave, for tests of what must bear them.
//
// A [Courier] stands in front of any transport.Deliverer and does to batches and fragments what networks, crashed daemons and copies of
// databases do: it loses, repeats, delays, reorders, and speaks with the voice of an epoch or a term that is over. Its acts follow from its
// source of chance alone. Like every Deliverer it makes up no result.
//
// A [Peer] speaks the protocol of package wire by hand, frame by frame or byte by byte, so that it can send what no link would. A [Host] is
// the other end of the same: one that is dialled, and answers whatever it likes.
package faultinjection
