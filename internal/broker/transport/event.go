package transport

import "log/slog"

// TraceEvent is an event of SQL Server's profiler, as the log of a daemon names it (spec 8.5).
type TraceEvent struct {
	Name     string
	ID       int
	Subclass int    // 0 for an event that has none
	Happened string // the name of the subclass
}

// In returns a logger whose lines carry the event.
func (e TraceEvent) In(log *slog.Logger) *slog.Logger { return log.With(e.Attr()) }

// Attr puts the event into a line of the log: event and event_id, and of an event with subclasses event_subclass and its name.
func (e TraceEvent) Attr() slog.Attr {
	attributes := []any{slog.String("event", e.Name), slog.Int("event_id", e.ID)}
	if e.Subclass > 0 {
		attributes = append(attributes, slog.Int("event_subclass", e.Subclass), slog.String("event_subclass_name", e.Happened))
	}
	return slog.Group("", attributes...)
}

func connection(subclass int, happened string) TraceEvent {
	return TraceEvent{Name: "Broker:Connection", ID: 138, Subclass: subclass, Happened: happened}
}

func login(subclass int, happened string) TraceEvent {
	return TraceEvent{Name: "Audit Broker Login", ID: 159, Subclass: subclass, Happened: happened}
}

func security(subclass int, happened string) TraceEvent {
	return TraceEvent{Name: "Audit Broker Conversation", ID: 158, Subclass: subclass, Happened: happened}
}

func classify(subclass int, happened string) TraceEvent {
	return TraceEvent{Name: "Broker:Message Classify", ID: 141, Subclass: subclass, Happened: happened}
}

// Events of links, of what comes over them, and of dialog security.
var (
	Connecting     = connection(1, "Connecting")
	Connected      = connection(2, "Connected")
	ConnectFailed  = connection(3, "Connect Failed")
	ConnectionGone = connection(5, "Closed")
	ConnectionMade = connection(6, "Accept")
	SendIOError    = connection(7, "Send IO Error")
	ReceiveIOError = connection(8, "Receive IO Error")

	LoginSuccess          = login(1, "Login Success")
	LoginProtocolError    = login(2, "Login Protocol Error")
	MessageFormatError    = login(3, "Message Format Error")
	NegotiateFailure      = login(4, "Negotiate Failure")
	AuthenticationFailure = login(5, "Authentication Failure")
	AuthorizationFailure  = login(6, "Authorization Failure")

	NoSecurityHeader = security(1, "No Security Header")
	NoCertificate    = security(2, "No Certificate")
	InvalidSignature = security(3, "Invalid Signature")

	ClassifiedLocal   = classify(1, "Local")
	ClassifiedRemote  = classify(2, "Remote")
	ClassifiedDelayed = classify(3, "Delayed")

	// An acknowledgement here is an answer of its own: never part of a message, as subclasses 1 and 3 are.
	AckSent     = TraceEvent{Name: "Broker:Remote Message Ack", ID: 149, Subclass: 2, Happened: "Acknowledgement Sent"}
	AckReceived = TraceEvent{Name: "Broker:Remote Message Ack", ID: 149, Subclass: 4, Happened: "Acknowledgement Received"}

	ForwardedMessageSent    = TraceEvent{Name: "Broker:Forwarded Message Sent", ID: 139}
	ForwardedMessageDropped = TraceEvent{Name: "Broker:Forwarded Message Dropped", ID: 140}
	TransmissionFailed      = TraceEvent{Name: "Broker:Transmission", ID: 142}
	MirroredRouteChanged    = TraceEvent{Name: "Broker:Mirrored Route State Changed", ID: 144}
	MessageUndeliverable    = TraceEvent{Name: "Broker:Message Undeliverable", ID: 160}
	CorruptedMessage        = TraceEvent{Name: "Broker:Corrupted Message", ID: 161}
)
