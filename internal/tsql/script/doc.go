// Package script cuts files into batches as sqlcmd does: GO, :setvar and $(variables), :r, :on error, encodings.
//
// A batch keeps from which file and line each of its lines came. GO in a comment, a string or a quoted name separates
// nothing. A command of sqlcmd leaves an empty line behind, so that the lines of a batch are those of its file.
package script
