// Package sql carries the schema `parley`: the broker itself, written in SQL and PL/pgSQL.
//
// Each file holds one concept; the file names give the order in which they are applied.
package sql

import "embed"

// Files holds every file of the schema, to be applied in the order of their names.
//
//go:embed *.sql
var Files embed.FS
