// Package bottleneck finds what limited a measurement. It samples what the sessions of the benchmark wait for, takes what the server and
// the system count, and names one limit in one sentence, with one change to try.
package bottleneck

// Analysis holds waits and counters of the time in which something was measured, and the conclusion. As JSON it is part of a stable format.
type Analysis struct {
	// Limit is the one thing that limited the run; Others are what comes after it.
	Limit  Finding   `json:"limit"`
	Others []Finding `json:"others"`

	Samples    int     `json:"samples"`
	IntervalMS float64 `json:"interval_ms"`
	Seconds    float64 `json:"seconds"` // that were measured
	// Sessions is how many there were on average, Working how many of them were at work in the server.
	Sessions float64 `json:"sessions"`
	Working  float64 `json:"working"`
	Waits    []Wait  `json:"waits"`

	Balance Balance `json:"balance"`
	System  System  `json:"system"`
	// Counters holds the server's own counts of that time: "database.blks_read", "wal.wal_bytes", "io.client backend.relation.normal.reads".
	// A counter that the server's version does not have is missing.
	Counters map[string]float64 `json:"counters"`
	// Buffers, Tables, Statements and Horizon are missing or empty where the server does not show them; Notes say why.
	Buffers    *Cache      `json:"buffers,omitempty"`
	Tables     []Table     `json:"tables,omitempty"`
	Statements []Statement `json:"statements,omitempty"`
	Horizon    []Holder    `json:"horizon,omitempty"`
	// Messages is how many the clients counted while it was measured; what a message costs is a part of it.
	Messages float64 `json:"messages,omitempty"`
	// SyncMicroseconds is how long a durable commit waits for the storage, 0 where that was not measured.
	SyncMicroseconds float64 `json:"sync_microseconds,omitempty"`
	// Notes say what could not be seen here.
	Notes []string `json:"notes,omitempty"`
}

// Wait is something that sessions were found at. PostgreSQL has no time of a wait: it is a share of samples.
type Wait struct {
	Event    string  `json:"event"`            // "CPU", "LWLock:WALWrite", "Client:ClientRead"
	Object   string  `json:"object,omitempty"` // what a lock is on
	Share    float64 `json:"share"`            // of the time of all sessions
	Sessions float64 `json:"sessions"`         // on average
}

// Balance has the rates of both sides, in messages a second; both 0 where a scenario has no two sides.
type Balance struct {
	In      float64 `json:"in"`
	Out     float64 `json:"out"`
	Backlog float64 `json:"backlog"` // messages that waited when the senders ended
	// BackEndMS is how long the far side takes for a message, 0 where there is none.
	BackEndMS float64 `json:"back_end_ms,omitempty"`
	// BackEndBusy is the part of the time in which the connections to it were busy with messages.
	BackEndBusy float64 `json:"back_end_busy,omitempty"`
}

// System has the load of the machine in that time; IsSeen is false where the server is on another one.
type System struct {
	IsSeen  bool    `json:"is_seen"`
	Cores   int     `json:"cores"`
	Busy    float64 `json:"busy"` // parts of all processors
	Kernel  float64 `json:"kernel"`
	IOWait  float64 `json:"io_wait"`
	Stolen  float64 `json:"stolen"`
	Client  float64 `json:"client"` // this program's part
	Servers float64 `json:"servers"`
	// FreeBytes is the memory that is available at the end.
	FreeBytes float64 `json:"free_bytes"`
	Disks     []Disk  `json:"disks"`
}

// Disk is one device.
type Disk struct {
	Name    string  `json:"name"`
	Busy    float64 `json:"busy"` // part of the time
	ReadMS  float64 `json:"read_ms"`
	WriteMS float64 `json:"write_ms"` // a request on average
}

// Finding is a limit.
type Finding struct {
	Kind     string `json:"kind"`     // one of the kinds below
	Sentence string `json:"sentence"` // what limits, and what helps
	Change   Change `json:"change"`
}

// The kinds of limits.
const (
	BackEnd    = "back end"
	Backlog    = "readers"
	Throttling = "throttling"
	WAL        = "WAL flush"
	Lock       = "lock"
	Buffers    = "buffers"
	Contention = "contention"
	Replica    = "replica"
	Client     = "client"
	Processor  = "processor"
	Snapshot   = "snapshot"
	Nothing    = "nothing"
)

// Change is the one change to try.
type Change struct {
	Text string `json:"text"`
	// Setting is the setting of the run that it changes, or "" where it is not one: it is for the user to make.
	Setting string `json:"setting,omitempty"`
}

// The settings of a run that a change may be of. A scenario takes those that it has.
const (
	SettingBatch    = "batch"
	SettingSessions = "sessions"
	SettingRows     = "rows"
	SettingWorkers  = "workers"
	SettingReaders  = "readers"
)
