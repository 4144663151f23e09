//go:build !unix

package postgres

import (
	"context"
	"errors"
	"os/exec"
)

var errUnsupported = errors.New("there is no private PostgreSQL on this system: name a database with --dsn, PARLEY_DSN or DATABASE_URL")

// Server is never made on this system.
type Server struct{}

// Start always fails on this system.
func Start(context.Context, Config) (*Server, error) { return nil, errUnsupported }

// CacheFolder always fails on this system.
func CacheFolder() (string, error) { return "", errUnsupported }

func (*Server) Stop(context.Context) error                   { return nil }
func (*Server) Supervise(context.Context) error              { return errUnsupported }
func (*Server) EnsureDatabase(context.Context, string) error { return errUnsupported }
func (*Server) DSN(string) string                            { return "" }
func (*Server) TCPDSN(string) (string, error)                { return "", errUnsupported }
func (*Server) Version() (int, error)                        { return 0, errUnsupported }
func (*Server) Command(string, ...string) *exec.Cmd          { return nil }
func (*Server) Own(string) error                             { return errUnsupported }
func (*Server) Created() bool                                { return false }
func (*Server) Folder() string                               { return "" }
func (*Server) Log() string                                  { return "" }
func (*Server) SocketFolder() string                         { return "" }
func (*Server) Port() int                                    { return 0 }
