package transport

// Figures count the messages that a database has transmitted and taken in since its daemon began, and describe its links. The daemon
// reports them under these names. The performance counters are made of them in sql/parley/views/performance_counters.sql, and the
// metrics of Prometheus in internal/broker/metrics.
type Figures struct {
	// Messages sent, by priority from 1 at index 0, and those that were taken in, or dropped because nobody here takes them.
	Sent     [10]int64 `json:"sent"`
	Received int64     `json:"received"`
	Dropped  int64     `json:"dropped"`
	// Parts of large messages, and their bytes.
	FragmentsSent         int64 `json:"fragments_sent"`
	FragmentsReceived     int64 `json:"fragments_received"`
	FragmentBytesSent     int64 `json:"fragment_bytes_sent"`
	FragmentBytesReceived int64 `json:"fragment_bytes_received"`
	// Answers of far sides that were not "accepted", and attempts that failed.
	NotAccepted    int64 `json:"not_accepted"`
	FailedAttempts int64 `json:"failed_attempts"`
	IsSuperseded   bool  `json:"is_superseded"`
	// Of dialogs that are secured: runs that were sealed, and opened; what was discarded because it could not be opened; and answers
	// that nobody had signed.
	Sealed    int64 `json:"sealed"`
	Opened    int64 `json:"opened"`
	Discarded int64 `json:"discarded"`
	Forged    int64 `json:"forged"`

	// Of all links of the daemon.
	Connections          int64 `json:"connections"`
	BytesSent            int64 `json:"bytes_sent"`
	BytesReceived        int64 `json:"bytes_received"`
	FramesSent           int64 `json:"frames_sent"`
	FramesReceived       int64 `json:"frames_received"`
	LinkMessagesSent     int64 `json:"link_messages_sent"`
	LinkMessagesReceived int64 `json:"link_messages_received"`
	// Batches and parts that were sent, or have come, and are not answered yet.
	OpenSends        int64 `json:"open_sends"`
	OpenReceives     int64 `json:"open_receives"`
	OpenSendBytes    int64 `json:"open_send_bytes"`
	OpenReceiveBytes int64 `json:"open_receive_bytes"`

	Corrupted int64 `json:"corrupted"`
	// RefusedSockets were closed before it was known who is there: there were enough, or it took too long.
	RefusedSockets      int64 `json:"refused_sockets"`
	Forwarded           int64 `json:"forwarded"`
	ForwardedBytes      int64 `json:"forwarded_bytes"`
	ForwardDropped      int64 `json:"forward_dropped"`
	ForwardPending      int64 `json:"forward_pending"`
	ForwardPendingBytes int64 `json:"forward_pending_bytes"`
}
