// Package work puts, claims and completes items of work that wait in lanes of the store, one lane for each next hop, port or host.
//
// Claim, commit, do the work, and record its outcome in a transaction of its own: no transaction is open meanwhile.
// docs/store.md has the rules.
package work
