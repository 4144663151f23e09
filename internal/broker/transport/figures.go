package transport

// Figures count the messages that a database has transmitted and taken in since its daemon began, and describe the daemon's links.
type Figures struct {
	// Messages sent, by priority from 1 at index 0, and those that were taken in, or dropped because nobody here takes them.
	Sent              [10]int64
	Received, Dropped int64
	// Parts of large messages, and their bytes.
	FragmentsSent, FragmentsReceived         int64
	FragmentBytesSent, FragmentBytesReceived int64
	// Answers of far sides that were not "accepted", and attempts that failed.
	NotAccepted, FailedAttempts int64
	IsSuperseded                bool
	// Of dialogs that are secured: runs that were sealed, and opened; what was discarded because it could not be opened; and answers
	// that nobody had signed.
	Sealed, Opened, Discarded, Forged int64

	// Of all links of the daemon.
	Connections                            int64
	BytesSent, BytesReceived               int64
	FramesSent, FramesReceived             int64
	LinkMessagesSent, LinkMessagesReceived int64
	// Batches and parts that were sent, or have come, and are not answered yet.
	OpenSends, OpenReceives         int64
	OpenSendBytes, OpenReceiveBytes int64

	Corrupted int64
	// RefusedSockets were closed before it was known who is there: there were enough, or it took too long.
	RefusedSockets                      int64
	Forwarded, ForwardedBytes           int64
	ForwardDropped                      int64
	ForwardPending, ForwardPendingBytes int64
}
