// Package sqltext cuts SQL and PL/pgSQL into tokens, and scripts into statements.
//
// It knows PostgreSQL's lexical rules: comments (nested ones too), the kinds of quotes, operators, and of the grammar only
// parentheses and the BEGIN ATOMIC bodies of SQL functions, which hide semicolons. It does not parse.
package sqltext
