package demo

import (
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// Result is the result of a run. As JSON it is a stable format; docs/reference/json.md describes it.
type Result struct {
	// Passed reports whether the check found nothing wrong, the reader was killed, and nothing was left behind.
	Passed bool `json:"passed"`
	Findings
	ReadersKilled int64 `json:"readers_killed"`
	// Seconds is the time from the first message sent to the last one received; MessagesPerSecond is what was received in it.
	Seconds           float64           `json:"seconds"`
	MessagesPerSecond float64           `json:"messages_per_second"`
	Payloads          []Payload         `json:"payloads"`
	LeftBehind        Leftovers         `json:"left_behind"`
	Settings          Settings          `json:"settings"`
	Machine           machine.Machine   `json:"machine"`
	Server            map[string]string `json:"server_settings"`
	StartedAt         time.Time         `json:"started_at"`
	// ReadersStarted counts the readers that the queue monitor started.
	ReadersStarted int64 `json:"readers_started"`
	// HTML is the path of the result page, or empty.
	HTML string `json:"html"`

	// Fields that only the page shows.
	samples []Sample
	batches []batch
	kill    kill
}

// Settings are the settings of the run.
type Settings struct {
	Senders         int     `json:"senders"`
	Readers         int     `json:"readers"`
	Conversations   int     `json:"conversations"`
	DurationSeconds float64 `json:"duration_seconds"`
}

// Payload is the phase of a run in which messages of one size were sent.
type Payload struct {
	PayloadBytes     int   `json:"payload_bytes"`
	MessagesSent     int64 `json:"messages_sent"`
	MessagesReceived int64 `json:"messages_received"`
	// SendSeconds is how long messages were sent; Seconds lasts until the last of them was received.
	SendSeconds float64 `json:"send_seconds"`
	Seconds     float64 `json:"seconds"`
	// MessagesPerSecond is the rate of messages received in Seconds.
	MessagesPerSecond float64 `json:"messages_per_second"`
	// ReceiveCalls brought messages, each so many.
	ReceiveCalls          int64 `json:"receive_calls"`
	MessagesPerCallMedian int64 `json:"messages_per_call_median"`
	MessagesPerCallMax    int64 `json:"messages_per_call_max"`
	// A send, from the call to the commit.
	SendP50MS float64 `json:"send_p50_ms"`
	SendP99MS float64 `json:"send_p99_ms"`

	// begun counts seconds since the first message.
	begun float64
}

// A batch size class counts the receive calls that brought at least so many messages, and less than twice as many.
type batch struct {
	atLeast, calls int64
}

// kill is when and which reader was killed.
type kill struct {
	seconds float64
	process int32
}
