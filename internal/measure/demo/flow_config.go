package demo

import (
	"fmt"
	"log/slog"
	"time"
)

// FlowConfig reports how much of the demo of integration to play.
type FlowConfig struct {
	// DSN leads to the server on which the database of the run is made.
	DSN string
	// Sessions post orders by HTTP; half as many put them into a table.
	Sessions int
	// Duration is the time in which orders are placed.
	Duration time.Duration
	// Database is the name of the database that is made for the run. One that an earlier run left is dropped.
	Database string
	// Keep leaves the database there for inspection.
	Keep bool
	// Program is the program parley that the nodes are; the default is this program itself.
	Program string
	// Observer receives the progress; it may be nil.
	Observer Observer[OrdersProgress]
	Logger   *slog.Logger
}

// Validate reports what cannot be played.
func (c FlowConfig) Validate() error {
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
const flowParts = 4

var flowPartNames = [flowParts]string{"all is well", "the warehouse is away", "the warehouse is back", "a node was killed"}

// OrdersProgress is where a run stands.
type OrdersProgress struct {
	Part string
	// Elapsed is the time since the first order; Duration is how long orders are placed, as asked for.
	Elapsed, Duration time.Duration
	OrdersSample
}

// OrdersSample holds the counts at one time of a run, in seconds since its beginning.
type OrdersSample struct {
	Seconds float64 `json:"seconds"`
	// Taken are the orders that came in by each way; RolledBack were put into the table by transactions that rolled back.
	Taken      map[string]int64 `json:"taken"`
	RolledBack int64            `json:"rolled_back"`
	// Delivered are the messages that arrived at each port, with those that came again.
	Delivered map[string]int64 `json:"delivered"`
	// Mended are the bad records that were suspended, mended and resubmitted.
	Mended int64 `json:"mended"`
	// Ended are the orders of partners that ended, confirmed or taken back; Late are the answers about them that came too late.
	Ended int64 `json:"ended"`
	Late  int64 `json:"late_answers"`
	// RepeatedRequests are the orders that were posted again by HTTP, and known by their key.
	RepeatedRequests int64 `json:"repeated_requests"`
}

// total adds up the counts of all ways.
func total(counts map[string]int64) (sum int64) {
	for _, count := range counts {
		sum += count
	}
	return sum
}
