// Package expression evaluates expressions and conditions of T-SQL without tables. Compiling gives each expression its static type
// and finds the errors that SQL Server finds before it runs a statement; evaluating gives values and the errors of single rows.
package expression
