package runner

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// RunOn runs batches in one session on a connection, which stays open, and which nobody else uses meanwhile. The error is the first one
// that a batch gives; batches behind it do not run. Result sets go nowhere.
func RunOn(ctx context.Context, conn *pgx.Conn, batches []string) error {
	config := conn.Config()
	id := interpreter.Identity{Login: config.User, User: config.User, Database: config.Database, Program: "parley"}
	s := New(id, connection.New(onlyOn(conn)))
	for _, batch := range batches {
		sink := &firstError{}
		if err := s.Run(ctx, batch, sink); err != nil {
			return fmt.Errorf("running a batch: %w", err)
		}
		if sink.found != nil {
			return sink.found
		}
	}
	if s.IsInTransaction() {
		return errOpen
	}
	return nil
}

// A firstError keeps the first error of a batch.
type firstError struct {
	session.Silent
	found *fault.Error
}

// Message keeps an error.
func (f *firstError) Message(m *fault.Error) error {
	if !m.IsInformational() && f.found == nil {
		f.found = m
	}
	return nil
}
