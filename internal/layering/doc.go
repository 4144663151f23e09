// Package layering holds the tests that keep the code base in its layers and its files readable.
//
// What may import what, and which modules of others are used by whom, stands in two tables of
// docs/internals/architecture.md. The tests read these tables, so neither the page nor the code can leave the other.
package layering
