// Package mail holds the statements of mail transport: what a daemon asks of the schema parley_mail and reports to it.
//
// The caller needs the right SERVE. The database decides: which message waits for which hop, what becomes of one that failed. A daemon that
// has claimed messages holds them under a lease, and what it reports after that is refused.
package mail
