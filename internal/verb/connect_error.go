package verb

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs that a server refuses a connection with.
const (
	wrongPassword    = "28P01"
	wrongLogin       = "28000"
	unknownDatabase  = "3D000"
	mayNotConnect    = "42501"
	tooManyConnected = "53300"
)

// connectionError states in one line why there is no connection, and what to do. The drivers' text has a line for each address that
// was tried; it stays reachable as the cause.
type connectionError struct {
	text  string
	cause error
}

func (e *connectionError) Error() string { return e.text }
func (e *connectionError) Unwrap() error { return e.cause }

// ExplainConnection gives an error of a connection the form of connectionError. Errors of other kinds stay as they are.
func ExplainConnection(err error) error {
	connectErr, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	where := ServerAddress(connectErr.Config.Host, connectErr.Config.Port)
	why := func(format string, arguments ...any) error {
		return &connectionError{text: fmt.Sprintf(format, arguments...), cause: err}
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		if isOfPooler(pgErr) {
			return why("the pooler at %s answers in place of PostgreSQL: %s; %s", where, pgErr.Message, poolerRemedy(pgErr.Message))
		}
		return why("PostgreSQL at %s refuses the connection: %s%s", where, pgErr.Message, refusalRemedy(pgErr.Code, connectErr.Config))
	}
	var unknownHost *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return why("no PostgreSQL listens at %s: start it, or name the right server with --dsn or PARLEY_DSN", where)
	case errors.Is(err, fs.ErrPermission):
		return why("this user may not open the socket at %s: use the user of the server, or a DSN with a TCP host", where)
	case errors.As(err, &unknownHost):
		return why("the host %s has no address: check the host of the DSN", unknownHost.Name)
	case errors.Is(err, os.ErrDeadlineExceeded), pgconn.Timeout(err):
		return why("PostgreSQL at %s does not answer in time: check host, port and firewall, or set connect_timeout in the DSN", where)
	}
	return fmt.Errorf("connect to the database: %w", err)
}

func refusalRemedy(sqlstate string, config *pgconn.Config) string {
	switch sqlstate {
	case wrongPassword, wrongLogin:
		return "; name another role or its password in the DSN, or in PGUSER and PGPASSWORD"
	case unknownDatabase:
		return fmt.Sprintf("; create it (createdb %s), or name another one in the DSN", config.Database)
	case mayNotConnect:
		return fmt.Sprintf("; let its owner grant it: grant connect on database %s to %s", config.Database, config.User)
	case tooManyConnected:
		return "; close some, or raise max_connections"
	}
	return ""
}

// ServerAddress writes where a server listens: a host and a port, or a socket.
func ServerAddress(host string, port uint16) string {
	if filepath.IsAbs(host) {
		return filepath.Join(host, fmt.Sprintf(".s.PGSQL.%d", port))
	}
	return net.JoinHostPort(cmp.Or(host, "localhost"), fmt.Sprint(port))
}

// BadDSN reports a DSN that cannot be read. The driver's text is left out: it may hold what was meant for a password.
func (a *App) BadDSN(err error) error {
	return &connectionError{cause: err, text: a.dsnSource() +
		" is no connection string: write postgres://user@host:5432/database, or host=... dbname=..."}
}

// dsnSource names the source of the DSN of this command.
func (a *App) dsnSource() string {
	switch {
	case a.DSN != "":
		return "--dsn"
	case os.Getenv("PARLEY_DSN") != "":
		return "PARLEY_DSN"
	}
	return "DATABASE_URL"
}
