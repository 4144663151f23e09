// Package ast has the nodes of a parsed batch of T-SQL.
//
// A node is a pointer to a struct, embeds its place in the batch, and says only what the batch says: names are not
// resolved, types not derived. Keywords are kept as constants or in upper case, identifiers without their quotes. Each
// node names the page of the documentation that defines it, below docs/t-sql of MicrosoftDocs/sql-docs.
package ast
