package receive

import (
	"iter"
	"net"
	"sync/atomic"
	"time"
)

// NodeLimits hold over all connectors of this node. 0 means no limit.
type NodeLimits struct {
	Connections          int
	ConnectionsPerMinute int
}

// connectionLimit is a limit that refuses a connection.
type connectionLimit int

// The limits on connections, with what counts them and what a peer reads (spec mail 3.2).
const (
	noLimit connectionLimit = iota
	nodeConnections
	nodeRate
	connectorConnections
	connectorRate
	sourceConnections
	connectionLimits
)

var limitNames = [connectionLimits]string{
	nodeConnections: "node connections", nodeRate: "node connection rate", connectorConnections: "connector connections",
	connectorRate: "connector connection rate", sourceConnections: "source connections",
}

var limitReplies = [connectionLimits]string{
	nodeConnections:      "421 4.3.2 Too many connections to this server, try again later\r\n",
	nodeRate:             "421 4.3.2 Too many connections to this server in this minute, try again later\r\n",
	connectorConnections: "421 4.7.0 Too many connections, try again later\r\n",
	connectorRate:        "421 4.7.0 Too many connections in this minute, try again later\r\n",
	sourceConnections:    "421 4.7.0 Too many connections from your address, try again later\r\n",
}

// refusals counts the connections that limits have refused.
type refusals [connectionLimits]atomic.Int64

// RefusedConnections gives how many connections each limit has refused, by its name.
func (c *Counters) RefusedConnections() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for limit := nodeConnections; limit < connectionLimits; limit++ {
			if !yield(limitNames[limit], c.refused[limit].Load()) {
				return
			}
		}
	}
}

// refuse ends a connection that a limit refuses.
func (s *Server) refuse(socket net.Conn, limit connectionLimit) {
	s.counters.refused[limit].Add(1)
	_ = socket.SetDeadline(time.Now().Add(time.Second))
	_, _ = socket.Write([]byte(limitReplies[limit]))
}
