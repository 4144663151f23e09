// Package postgres runs the private PostgreSQL that Parley uses when no other database is named.
//
// A data folder holds one cluster. All that start a Server on the folder, in whatever process, share one
// running PostgreSQL; it stops when the last of them has let go of it. Clients connect through a Unix socket
// that only the server's own operating system user, and root, can reach.
package postgres

import (
	"log/slog"
	"time"
)

// Config reports where the private PostgreSQL lives and what it is like. The zero value is a good one.
type Config struct {
	// Data is the data folder. The default is parley in the user's data directory ($XDG_DATA_HOME, else
	// ~/.local/share), or /var/lib/parley for root where that is out of reach for PostgreSQL's user.
	Data string
	// Version is the major version, such as "18". The default is the one that made the cluster in the data
	// folder; for a new folder the newest installed; where none is installed, 18 is fetched.
	Version string
	// Binaries is the folder of the PostgreSQL programs. The default is to search for them.
	Binaries string
	// Cache is the folder for fetched PostgreSQL programs, with the same kind of default as Data.
	Cache string
	// Settings are added to, and win over, Parley's own choice of server settings.
	Settings map[string]string
	// TCP makes the server listen on a free port of 127.0.0.1 too, with a password. See [Server.TCPDSN].
	TCP bool
	// Linger is how long the server outlives its last user. It counts for the process that starts the server.
	Linger time.Duration
	// Disposable allows to make the cluster anew, empty, when the one in the folder does not start.
	Disposable bool
	// Logger receives what takes long or went wrong. The default is silence.
	Logger *slog.Logger
}
