// Package module keeps the text of procedures of T-SQL in the database. Each is a procedure of PostgreSQL without arguments: the text
// stands in its body as comments, so that rights, owners, dumps and DROP are those of PostgreSQL. Calling it there is an error that
// says how it is run.
package module
