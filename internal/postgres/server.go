// Package postgres runs the private PostgreSQL that Parley uses when no other database is named.
package postgres

import (
	"context"
	"errors"
)

// Config says where the private PostgreSQL lives and which version it is.
type Config struct {
	// Data is the data folder; empty means the default of the user.
	Data string
	// Version is a major version such as "18"; empty means the folder's own, else the newest installed.
	Version string
}

// Server is one process's hold on a private PostgreSQL.
type Server struct{}

// Start starts the server of a data folder, or joins it when it runs already.
func Start(ctx context.Context, config Config) (*Server, error) {
	return nil, errors.New("not available yet; give --dsn")
}

// DSN returns the connection string of a database of this server.
func (s *Server) DSN(database string) string { return "" }

// EnsureDatabase creates a database unless it exists.
func (s *Server) EnsureDatabase(ctx context.Context, name string) error { return nil }

// Stop lets go of the server; the last one to do so stops it.
func (s *Server) Stop(ctx context.Context) error { return nil }
