// Package database compiles the statements about databases of T-SQL. A database of T-SQL is one of PostgreSQL in which a broker is
// installed. Its name is folded to lower case there; settings of the database keep how T-SQL writes it, and which broker it has, for
// sessions in other databases.
package database
