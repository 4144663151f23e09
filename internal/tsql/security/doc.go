// Package security compiles the statements of T-SQL on users, rights and keys. Users, logins and roles are roles of PostgreSQL; a right
// on an object of the broker is one of the broker, another one of PostgreSQL.
package security
