// Package trust decides which keys a daemon accepts over the network, and proves its own identity: mutual TLS 1.3.
//
// The databases that the daemon serves own the truth: each has a list of peers, and a link is allowed when one of them trusts the key
// at its other end. A message that arrives over the link is judged once more by the database that it is for, which knows roles and
// revocations of its own. Here is only a copy of the lists, some seconds old at most; while a database is out of reach the copy stays in
// force, and nothing can reach that database either.
//
// How a key is trusted, in this order: it is in a list; a key that is in a list, and valid, has signed it (a rotation), and then
// it is added to the list; a certificate authority that the operator has named vouches for it. A key that a list has as revoked is
// trusted in none of these ways, unless another database of the daemon trusts it.
//
// A refusal is written in full to the log here, with the number that Service Broker gives to it. The other side gets the same
// short alert whatever was wrong, so an unknown peer learns nothing about which keys are known.
//
// Open links are checked again with each new copy of the lists. No tickets are given out: each connection is a full
// handshake that is judged anew.
package trust
