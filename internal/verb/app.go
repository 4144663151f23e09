// Package verb is what every verb of the command line stands on: the app, connections, output, completion, and errors with an exit code.
package verb

import (
	"io"
)

// App holds the parts that every verb shares: the streams, the persistent flags and the connections made on the way.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	DSN             string
	Data            string
	PostgresVersion string
	JSON            bool

	Private privateServer

	// VerbReached distinguishes a failure of a verb from a command line that never got to one.
	VerbReached bool
}
