// Package function has the built-in functions of T-SQL that need no database: text, numbers, dates, bytes and JSON. Each says which
// arguments it takes, which type its result has, and gives a value or the error of SQL Server.
package function
