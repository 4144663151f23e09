// Package content streams immutable bodies into the store of a database and out of it. No whole body is in memory on either side.
//
// A holder, a number of a system's own, refers to each body; what nobody refers to any more is removed. docs/store.md has the rules.
package content
