// Package pages holds the test that runs the SQL of the documentation, so that no page shows a statement that fails or
// an output that does not come.
//
// Each page is one session of psql in a fresh database: its blocks marked sql run in their order. A block marked text that
// follows is the last rows, or the error of the last statement; identifiers and times in it may be any. \gset and :'name'
// work as in psql. The README and the tutorial run one after the other in one database, too.
package pages
