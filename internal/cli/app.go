package cli

import (
	"io"
)

// app is what every verb shares: the streams, the persistent flags and the connections made on the way.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	dsn             string
	data            string
	postgresVersion string
	json            bool

	private privateServer

	// verbReached distinguishes a failure of a verb from a command line that never got to one.
	verbReached bool
}
