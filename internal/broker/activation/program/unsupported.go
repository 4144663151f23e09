//go:build !unix

package program

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// reader is one instance of a program.
type reader struct {
	path        string
	arguments   []string
	directory   string
	environment []string
	stopTimeout time.Duration
	logger      *slog.Logger
}

// Run fails: programs need process groups and signals.
func (r *reader) Run(context.Context) error {
	return errors.New("programs can be started on Unix only; run the daemon there")
}
