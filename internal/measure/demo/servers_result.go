package demo

import (
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// ServersResult is the result of a run on several servers. As JSON it is a stable format; docs/reference/json.md describes it.
type ServersResult struct {
	// Passed reports whether the check found nothing wrong, a link that was in use was cut and came back, and nothing was left behind.
	Passed bool `json:"passed"`
	Findings
	// Seconds is the time from the first message sent to the last one received; MessagesPerSecond is what was received in it.
	Seconds           float64           `json:"seconds"`
	MessagesPerSecond float64           `json:"messages_per_second"`
	Phases            []Phase           `json:"phases"`
	Cut               Cut               `json:"cut"`
	Links             []Link            `json:"links"`
	LeftBehind        Leftovers         `json:"left_behind"`
	Settings          ServersSettings   `json:"settings"`
	Machine           machine.Machine   `json:"machine"`
	Server            map[string]string `json:"server_settings"`
	StartedAt         time.Time         `json:"started_at"`
	// HTML is the path of the result page, or empty.
	HTML string `json:"html"`

	// Fields that only the page shows.
	samples []FlowSample
}

// ServersSettings are the settings of the run.
type ServersSettings struct {
	Settings
	Servers int `json:"servers"`
}

// Phase is a part of a run in which some of the initiators sent messages of one size.
type Phase struct {
	Payload
	Initiators int `json:"initiators"`
	// IsSpread reports that each conversation in use was begun with 149 idle ones between it and the next.
	IsSpread bool `json:"is_spread"`
	// HasCut reports that a link was cut meanwhile.
	HasCut bool `json:"has_cut"`
	// WaitingMax is the most that was seen in the transmission queues of all initiators together.
	WaitingMax int64 `json:"waiting_max"`

	label string
}

// Cut is how a link was broken, and what became of what it should have carried.
type Cut struct {
	Initiator string `json:"initiator"`
	// AtSeconds counts from the first message; Seconds is how long the link was cut.
	AtSeconds float64 `json:"at_seconds"`
	Seconds   float64 `json:"seconds"`
	// ConnectionsBroken is how many connections were in use and broke.
	ConnectionsBroken int `json:"connections_broken"`
	// WaitingMax is the most that waited behind it; CaughtUpSeconds after the link was restored nothing did any more.
	WaitingMax      int64   `json:"waiting_max"`
	CaughtUpSeconds float64 `json:"caught_up_seconds"`
}

// Link counts the messages that passed between an initiator and the target.
type Link struct {
	Initiator    string `json:"initiator"`
	MessagesSent int64  `json:"messages_sent"`
	// CarriedBytes passed on the wire, both ways.
	CarriedBytes int64 `json:"carried_bytes"`
}

// FlowSample holds the counts at one time of a run, in seconds since the first message; the initiators in their order.
type FlowSample struct {
	Seconds       float64
	Sent, Waiting []int64
	Received      int64
}

func (s FlowSample) sent() (sum int64) {
	for _, n := range s.Sent {
		sum += n
	}
	return sum
}

func (s FlowSample) waiting() (sum int64) {
	for _, n := range s.Waiting {
		sum += n
	}
	return sum
}
