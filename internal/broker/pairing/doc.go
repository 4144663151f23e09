// Package pairing lets two brokers that have never met learn each other's keys, without an authority that both believe in.
//
// The caller opens a TLS 1.3 connection to the port on which the other one accepts links, and asks for this protocol by name (ALPN); the
// server lets that in only while a pairing is open. Each side shows its certificate and so proves to have its key, but neither knows yet
// whose key that is: a man in the middle may hold both ends of two connections. A code decides that. It is bound to the connection by the
// keying material that only its two ends have (RFC 5705):
//
//   - With an invitation, a secret of 128 random bits that people have carried over, each side proves to know the secret by an HMAC
//     over the keying material and both keys. A proof is good for no other connection, so it cannot be relayed, replayed or
//     guessed at later. The secret itself does not travel.
//   - Without, both sides show a code of 48 bits, which people compare. It is made of the keying material, both keys and a random
//     number of each side; the caller is bound to its number before it learns the other one, so who is in the middle cannot try
//     numbers until the two codes are alike: each connection put between has a chance of 2^-48.
//
// Then each side names its broker and its services. These claims count for no more than the key they came with.
//
// Messages are JSON behind a length of four bytes, and small. An unknown peer can make a daemon do little: a few connections at once, each
// for minutes at most, some rows in a table that is emptied.
package pairing
