// Package translator makes PostgreSQL's statements of T-SQL's statements with tables: one statement each, with parameters.
//
// Expressions that read no row are evaluated in Go with SQL Server's types and travel as parameters; no value becomes a part of SQL.
// The list of a SELECT whose rows go to the client or to variables is evaluated in Go too: PostgreSQL gives the columns, aggregates
// and subqueries that it has. Expressions of conditions, groups, orders and changes are written as SQL of the same meaning; a
// function that has no such form is refused by its name.
//
// Text is kept as bpchar with a collation of SQL Server's rules: case and blanks at the end do not count in comparisons, keys and
// groups. The comment of a column has its type in T-SQL.
package translator
