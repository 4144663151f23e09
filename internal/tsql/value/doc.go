// Package value has the data types of SQL Server and their values: how one becomes another, how two compare and compute, and
// how each is written. It knows no database; what depends on a session's options is passed in Settings.
package value
