//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/backoff"
)

// crashPoll is how often a supervised server is checked.
const crashPoll = 250 * time.Millisecond

// Supervise starts the server again whenever it has crashed, until ctx ends or it is
// stopped; that is no error. It returns an
// error when the server cannot be started again. Several may supervise one server.
func (s *Server) Supervise(ctx context.Context) error {
	for backoff.Wait(ctx, crashPoll) == nil && !s.stopped() {
		if s.alive() {
			continue
		}
		// One that is stopped before it is ready has crashed once more.
		if err := s.revive(ctx); err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			return fmt.Errorf("start the crashed server again: %w", err)
		}
	}
	return nil
}

func (s *Server) alive() bool {
	p, ok, err := s.folder.readPostmaster()
	return err == nil && ok && s.folder.serves(p.pid)
}

func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users == nil
}

func (s *Server) revive(ctx context.Context) error {
	start, err := s.lockStart(ctx)
	if err != nil {
		return err
	}
	defer start.close()
	if s.alive() || s.stopped() {
		return nil
	}
	s.log.Warn("the server is gone, starting it again", "folder", s.folder.root)
	return s.ensure(ctx)
}

// EnsureDatabase creates a database of this name unless there is one.
func (s *Server) EnsureDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the private PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("find database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	// Another command may have been faster: that shows as a duplicate name, or as its index entry.
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && (pgErr.Code == "42P04" || pgErr.Code == "23505") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}
