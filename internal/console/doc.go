// Package console serves the pages in which people see what a broker does and mend it.
//
// Rights are those of the database. A user logs in as a role of PostgreSQL with its password, the server checks it, and each
// statement of the user runs in a connection of that role. The console knows no right of its own and asks no table for one.
//
// A page is read in a transaction that can change nothing, with a limit of rows and of time. A change is one transaction, which
// also records who did it (parley.operator_actions).
package console
