package demo

import (
	"fmt"
	"log/slog"
	"time"
)

// MailConfig reports how much of the demo of mail to play.
type MailConfig struct {
	// DSN leads to the server on which the database of the run is made.
	DSN string
	// Sessions place orders, and as many customers answer.
	Sessions int
	// Duration is the time in which orders are placed.
	Duration time.Duration
	// Database is the name of the database that is made for the run. One that an earlier run left is dropped.
	Database string
	// Keep leaves the database there for inspection.
	Keep bool
	// Program is the program parley that the daemons are; the default is this program itself.
	Program string
	// Observer receives the progress; it may be nil.
	Observer Observer[MailProgress]
	Logger   *slog.Logger
}

// Validate reports what cannot be played.
func (c MailConfig) Validate() error {
	switch {
	case c.Sessions < 1 || c.Sessions > 32:
		return fmt.Errorf("%d sessions cannot be played, only 1 to 32", c.Sessions)
	case c.Duration < time.Second || c.Duration > 10*time.Minute:
		return fmt.Errorf("%v cannot be played, only 1 second to 10 minutes", c.Duration)
	case !plainName.MatchString(c.Database):
		return fmt.Errorf("database name %q needs quotes: use lower case letters, digits and _", c.Database)
	}
	return nil
}

// The parts of a run, each a quarter of its time.
const (
	mailWell = iota
	mailRelayAway
	mailRelayBack
	mailDaemonKilled
	mailParts
)

var mailPartNames = [mailParts]string{"all is well", "the relay is away", "the relay is back", "a daemon was killed"}

// MailProgress is where a run stands.
type MailProgress struct {
	Part string
	// Elapsed is the time since the first order; Duration is how long orders are placed, as asked for.
	Elapsed, Duration time.Duration
	MailSample
}

// MailSample holds the counts at one time of a run, in seconds since its beginning.
type MailSample struct {
	Seconds float64 `json:"seconds"`
	// Orders were committed, RolledBack were not; Confirmed arrived at the relay.
	Orders     int64 `json:"orders"`
	RolledBack int64 `json:"rolled_back"`
	Confirmed  int64 `json:"confirmed"`
	// Answers were accepted from customers; Received came as messages.
	Answers  int64 `json:"answers"`
	Received int64 `json:"received"`
}
