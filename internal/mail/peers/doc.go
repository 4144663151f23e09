// Package peers tests mail transport against the programs that others use: mail servers that relay to it and from it, mailbox stores, and
// clients. It has tests only. Each is skipped where its program is not installed.
package peers
