// Package sqltext cuts SQL scripts into statements.
//
// It knows PostgreSQL's lexical rules only as far as a semicolon can hide behind them: comments (nested ones too),
// the four kinds of quotes, parentheses, and the BEGIN ATOMIC bodies of SQL functions. It does not parse.
package sqltext
