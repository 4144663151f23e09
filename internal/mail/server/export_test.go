package server

import (
	"io/fs"
	"time"

	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// Measure has a server that is not running yet measure often, and what a source says count more than what was measured. Its tarpit begins
// with first.
func (s *Server) Measure(interval, first time.Duration, source governorstore.Source) {
	s.governing.interval, s.governing.measured = interval, source
	s.pressure.tarpit = tarpit{first: first, step: first / 2, most: 2 * first}
}

// ReadMachine has a server that is not running yet read the counters of the machine from other files.
func (s *Server) ReadMachine(root fs.FS) { s.governing.root = root }
