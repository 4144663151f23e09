// Package dialogsecurity protects the messages of a conversation from one database to the other, whatever lies between them. A forwarder
// carries them, but can neither read a body, nor change anything about a message, nor make up an answer.
//
// Terms (spec 7.3). A secured dialog is anonymous, where only the target proves who it is, or full, where both sides do. A
// certificate is a pair of public keys, one to verify signatures and one to seal for, owned by a role. A remote service binding
// names the role that stands for a remote service. A key agreement is what two certificates have agreed on: a secret that one
// made and sealed for the other (HPKE), signed in full security. It is made once for many conversations and some hours, so
// a message costs no operation with a public key. From its secret every call of Seal derives new keys, one for each run, so
// that a key never meets the same number with another body, not even when a database comes back without its last messages.
//
// The database owns the truth: which conversations are secured and how, whose certificates count, who is who. A guard
// keeps secrets and answers in memory, for a second where they can change and as long as it runs where they cannot.
//
// A message that the receiving side opens was written by the side it knows, for this conversation, direction and number. A message that
// cannot be opened is discarded, and its sender gets no acknowledgement; it tries again.
package dialogsecurity
