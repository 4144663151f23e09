package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/postgres"
)

// ServerConfig reports what the private servers are like.
type ServerConfig struct {
	// Version is the major version of PostgreSQL; the default is the newest installed.
	Version string
	// Settings win over the private server's own choice.
	Settings map[string]string
	// Logger receives what takes long.
	Logger *slog.Logger
}

// serverTimeout leaves time for the checkpoint of a fast shutdown.
const serverTimeout = time.Minute

// Servers are private PostgreSQL servers, each with a data folder of its own.
type Servers struct {
	running []*postgres.Server
}

// StartServers starts a server for each name, all at once, in folders of these names. The caller must Stop them.
func StartServers(ctx context.Context, folder *Folder, names []string, config ServerConfig) (*Servers, error) {
	s := &Servers{running: make([]*postgres.Server, len(names))}
	failures := make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() {
			s.running[i], failures[i] = postgres.Start(ctx, postgres.Config{
				Data: filepath.Join(folder.Path, name), Version: config.Version, Settings: config.Settings, Logger: config.Logger,
			})
		})
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, errors.Join(fmt.Errorf("start the private servers: %w", err), s.Stop(ctx))
	}
	return s, nil
}

// DSN is the connection string of a database of one of them, counted in the order of the names.
func (s *Servers) DSN(number int, database string) string { return s.running[number].DSN(database) }

// Stop stops all of them, also when ctx has ended. A second Stop does nothing.
func (s *Servers) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
	defer cancel()
	failures := make([]error, len(s.running))
	var stopping sync.WaitGroup
	for i, server := range s.running {
		if server != nil {
			stopping.Go(func() { failures[i] = server.Stop(ctx) })
		}
	}
	stopping.Wait()
	return errors.Join(failures...)
}

// EnsureDatabase creates a database on one of them unless there is one.
func (s *Servers) EnsureDatabase(ctx context.Context, number int, name string) error {
	return s.running[number].EnsureDatabase(ctx, name)
}
