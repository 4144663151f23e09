package link

import (
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
)

// State is how far a connection is, in the numbers of dm_broker_connections (spec 8.3).
type State int

// The states.
const (
	Opening    State = 1
	Connecting State = 2
	Connected  State = 3
	LoggedIn   State = 4
	Closed     State = 5
)

func (s State) String() string {
	switch s {
	case Opening:
		return "NEW"
	case Connecting:
		return "CONNECTING"
	case Connected:
		return "CONNECTED"
	case LoggedIn:
		return "LOGGED_IN"
	case Closed:
		return "CLOSED"
	default:
		return "UNKNOWN"
	}
}

// ConnectionState describes one connection.
type ConnectionState struct {
	ConnectionID parley.UUID
	// Address is the far end's, host:port.
	Address string
	State   State
	// ConnectTime is when there was a socket, LoginTime when both ends had sent a Hello.
	ConnectTime, LoginTime, LastActivityTime time.Time
	// IsAccept reports that the other side dialled.
	IsAccept bool
	// AuthenticationMethod is CERTIFICATE or NONE, Identity the fingerprint of the peer's key, EncryptionAlgorithm the suite of TLS.
	AuthenticationMethod, Identity, EncryptionAlgorithm string
	// Brokers are those that the peer serves, Software is what it calls itself.
	Brokers  []wire.Broker
	Software string
	Version  uint32
	// SendsPosted and ReceivesPosted are the questions open, as asked and as taken. OpenBytes is what they count in the Window.
	SendsPosted, ReceivesPosted int
	OpenBytes, Window           int64
	// Flow controlled is an end that has to wait for room in the window: this one to send, or the peer as far as can be seen here.
	IsSendFlowControlled, IsReceiveFlowControlled bool
	Totals
}

// Totals count what went over one connection, or over all that there were: of a [Link], of a [Server]. They never fall.
type Totals struct {
	// Bytes are those on the socket; fragments are messages in batches, and parts of large ones; sends and receives are frames.
	TotalBytesSent, TotalBytesReceived         int64
	TotalFragmentsSent, TotalFragmentsReceived int64
	TotalSends, TotalReceives                  int64
}

func (t *Totals) add(other Totals) {
	t.TotalBytesSent += other.TotalBytesSent
	t.TotalBytesReceived += other.TotalBytesReceived
	t.TotalFragmentsSent += other.TotalFragmentsSent
	t.TotalFragmentsReceived += other.TotalFragmentsReceived
	t.TotalSends += other.TotalSends
	t.TotalReceives += other.TotalReceives
}

// traffic counts what a connection carried.
type traffic struct {
	sends, receives                  atomic.Int64
	fragmentsSent, fragmentsReceived atomic.Int64
}

func (t *traffic) totals(s *socket) Totals {
	return Totals{
		TotalBytesSent: s.written.Load(), TotalBytesReceived: s.read.Load(),
		TotalFragmentsSent: t.fragmentsSent.Load(), TotalFragmentsReceived: t.fragmentsReceived.Load(),
		TotalSends: t.sends.Load(), TotalReceives: t.receives.Load(),
	}
}

func (t *traffic) fill(state *ConnectionState, s *socket) {
	state.Totals = t.totals(s)
	state.ConnectTime = s.opened
	state.LastActivityTime = time.Unix(0, s.lastActivity.Load())
	state.Address = s.RemoteAddr().String()
}

// newID names a connection.
func newID() (u parley.UUID) {
	rand.Read(u[:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}
