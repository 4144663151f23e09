package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config reports what to measure, and how long. Numbers that are 0 are the variant's own where it has one.
type Config struct {
	Frame

	// Variants are the variants to measure; none: all of the scenario.
	Variants []string
	// Sessions, Conversations, Size (bytes of a body) and Batch (messages of a call) replace what a variant has of them.
	// Variants whose point it is to have one conversation, one session or one message a call keep that.
	Sessions, Conversations, Size, Batch int
	// Messages is how many wait to be received, or are to age the database.
	Messages int
	// Rows are those of which a business transaction changes one.
	Rows int
	// Duration of a run that has no end of its own, and before it WarmUp, which does not count.
	Duration, WarmUp time.Duration
	// Repeat is how often each trial is run.
	Repeat int
	// Dialog counts for dialogs between databases only.
	Dialog DialogOptions
	// Peers are measured beside Parley, where a scenario has peers.
	Peers []Peer
	// Matrix counts for the paper's matrix only.
	Matrix MatrixOptions
	// Mail counts for mail only.
	Mail MailOptions
	// TSQL has the scenario drain measure its procedures in T-SQL too; nil leaves them out.
	TSQL TSQL
}

// DefaultRows are enough for transactions not to meet on one.
const DefaultRows = 1000

// DefaultSize is the size of a body that the goals are for, in bytes.
const DefaultSize = 100

// Check reports what is wrong with a configuration for a scenario, before there is a DSN.
func (c Config) Check(scenario Scenario) error {
	for _, number := range []struct {
		name  string
		value int
		least int
	}{
		{"sessions", c.Sessions, 0},
		{"conversations", c.Conversations, 0},
		{"size", c.Size, 0},
		{"batch", c.Batch, 0},
		{"messages", c.Messages, 1},
		{"rows", c.Rows, 0},
		{"repeat", c.Repeat, 1},
		{"duration", int(c.Duration), 1},
		{"warm-up", int(c.WarmUp), 0},
		{"readers", c.Dialog.Readers, 0},
		{"rate", c.Dialog.Rate, 0},
		{"run-messages", c.Mail.Messages, 0},
		{"destinations", c.Mail.Destinations, 0},
		{"server-cache", c.Mail.ServerCache, 0},
		{"steady", int(c.Mail.Steady), 0},
	} {
		if number.value < number.least {
			return fmt.Errorf("%s must be at least %d", number.name, number.least)
		}
	}
	for _, cell := range c.Matrix.cells() {
		if min(cell.Initiators, cell.Threads, cell.Size, cell.Dialogs) < 1 || cell.Initiators > paperInitiators {
			return fmt.Errorf("a cell has 1 to %d initiators, and at least one thread, byte and dialog", paperInitiators)
		}
	}
	for _, step := range slices.Concat(c.Dialog.ConversationSteps, c.Dialog.TargetSteps) {
		if step < 1 {
			return errors.New("steps must be at least 1")
		}
	}
	ours := []string{systemParley, systemInsert, systemSimple, systemCopy, systemActivation, systemConsumer, systemTSQL}
	if err := checkPeers(c.Peers, ours...); err != nil {
		return err
	}
	known := scenario.names()
	for _, name := range c.Variants {
		if !slices.Contains(known, name) {
			return fmt.Errorf("variant %q is unknown: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// wants reports whether a variant is to be measured.
func (c Config) wants(variant string) bool {
	return len(c.Variants) == 0 || slices.Contains(c.Variants, variant)
}

// or is the number asked for, or the usual one.
func or(asked, usual int) int {
	if asked > 0 {
		return asked
	}
	return usual
}
