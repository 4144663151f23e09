// Package runner puts a session of T-SQL together on a connection, for scripts and for the procedures that the daemon activates.
package runner
