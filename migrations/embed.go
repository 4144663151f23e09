// Package migrations carries the changes between released versions of the schema.
//
// NNN.sql takes tables and data from version NNN-1 to NNN and drops what NNN no longer has. It leaves functions, views,
// triggers, comments and grants alone unless they stand in its way: those are re-created from sql/ afterwards.
package migrations

import "embed"

// Files holds the numbered migrations.
//
//go:embed *.sql
var Files embed.FS
