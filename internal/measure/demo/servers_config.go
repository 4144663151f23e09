package demo

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ServersConfig reports how much of the workload to play on several servers. Of what it shares with a run on one, Database, Keep and
// Observer do not count: the servers are made for the run and go with it.
type ServersConfig struct {
	Config
	// Servers is how many: one target, the others initiators. Senders and Conversations are those of all initiators together.
	Servers int
	// Program is the program parley that the daemons are; the default is this program itself.
	Program string
	// PostgresVersion is the major version of the private servers; the default is the newest installed.
	PostgresVersion string
	// FlowObserver receives the progress; it may be nil. Logger receives what takes long.
	FlowObserver Observer[Flow]
	Logger       *slog.Logger
}

const (
	// serversMax is the number of servers in the paper: three initiators and a target.
	serversMax = 4
	// idleBetween is how many conversations the paper leaves idle for each that it uses, less one.
	idleBetween = 150
)

// Validate reports what cannot be played.
func (c ServersConfig) Validate() error {
	switch initiators := c.Servers - 1; {
	case c.Servers < 2 || c.Servers > serversMax:
		return fmt.Errorf("%d servers cannot be played, only 1 to %d", c.Servers, serversMax)
	case c.Senders < initiators || c.Readers < 1:
		return errors.New("a run needs at least one sender for each initiator, and one reader")
	case c.Senders+c.Readers > sessionsMax:
		return fmt.Errorf("%d senders and readers are too many, at most %d in all", c.Senders+c.Readers, sessionsMax)
	case c.Conversations < initiators || c.Conversations > conversationsMax/idleBetween:
		return fmt.Errorf("%d conversations cannot be used, only %d to %d", c.Conversations, initiators, conversationsMax/idleBetween)
	case c.Duration < time.Duration(len(c.plan()))*time.Millisecond:
		return fmt.Errorf("%v is too short a run", c.Duration)
	}
	return nil
}

// flowPhase is a part of a demo: its senders, and what they send.
type flowPhase struct {
	// initiators send, the first ones.
	initiators int
	bytes      int
	// spread uses conversations that were begun far from each other, as the paper's trick wants it.
	spread bool
	// cut breaks a link on the way.
	cut bool
}

func (p flowPhase) label() string {
	if p.initiators == 0 {
		return "first messages"
	}
	text := fmt.Sprintf("%d × %s", p.initiators, bytesText(p.bytes))
	if p.spread {
		text += ", 1 in 150"
	}
	return text
}

// plan lists the phases: the paper's figures 2 to 4 in their order, the larger bodies, and figure 5.
func (c ServersConfig) plan() []flowPhase {
	var phases []flowPhase
	all := c.Servers - 1
	for initiators := 1; initiators <= all; initiators++ {
		phases = append(phases, flowPhase{initiators: initiators, bytes: PayloadBytes[0]})
	}
	for i, bytes := range PayloadBytes[1:] {
		phases = append(phases, flowPhase{initiators: all, bytes: bytes, cut: i == 0})
	}
	return append(phases, flowPhase{initiators: all, bytes: PayloadBytes[0], spread: true})
}

// share is the part of a number that falls to one of several.
func share(number, of, among int) int {
	part := number / among
	if of < number%among {
		part++
	}
	return part
}
