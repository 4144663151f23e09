// Package mailcheck decides whether mail transport kept its promises: what was accepted arrived at every recipient or was reported,
// what was not accepted never arrived, nothing came twice that need not, and nothing was changed.
//
// Terms. A letter is a message that a workload submits; its key, in its header, names it wherever it arrives. A [Submission] is a letter
// with what its submitter learned: accepted, not accepted, or unknown. An [Arrival] is a letter at one recipient. A [Host] takes mail by
// SMTP or LMTP, fails on purpose, and keeps a log that shows how each transaction ended. [Judge] compares the accounts of both ends.
//
// It shares no code with mail transport: it writes and reads mail with its own hands and the standard library.
package mailcheck
