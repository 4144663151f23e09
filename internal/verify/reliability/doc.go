// Package reliability holds the tests of what Parley promises when many sessions work at once, when transactions
// fail, and when clients, backends or the whole server die: each message that was committed is received exactly once,
// in the order of its conversation, by a transaction that commits. Invariants have numbers, S1 to S19; a test that
// guards one names it.
//
// Interleavings are made, not hoped for: a session is brought to where it waits for a lock, which is a state that can be seen, and only
// then does the next one act. Orders that cannot be arranged so are left to the stress test and the random histories, whose verdict comes
// from a ledger that the workload keeps in its own transactions.
package reliability
