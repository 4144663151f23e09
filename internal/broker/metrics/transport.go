package metrics

import "github.com/parley-broker/parley/internal/broker/transport"

// AttachTransport sets where the figures of transport come from. Call it before anything is served.
func (d *Database) AttachTransport(figures func() transport.Figures) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transport = figures
}

func ofTransport(name, help string, k kind, read func(f transport.Figures) int64) metric[transport.Figures] {
	return family("transport_"+name, help, k, ofDatabase, func(f transport.Figures) (float64, bool) { return float64(read(f)), true })
}

// transportMetrics count the messages that this daemon has carried between the database and others. Those of links are of the whole daemon.
var transportMetrics = []metric[transport.Figures]{
	ofTransport("messages_sent_total", "Messages delivered to other databases, those sent again included.", counter,
		func(f transport.Figures) (sum int64) {
			for _, sent := range f.Sent {
				sum += sent
			}
			return sum
		}),
	ofTransport("messages_received_total", "Messages from other databases that were taken in, those that came again included.", counter,
		func(f transport.Figures) int64 { return f.Received }),
	ofTransport("messages_dropped_total", "Messages from other databases that were refused or had no target.", counter,
		func(f transport.Figures) int64 { return f.Dropped }),
	ofTransport("answers_not_accepted_total", "Answers of other databases other than that they have taken what was sent.", counter,
		func(f transport.Figures) int64 { return f.NotAccepted }),
	ofTransport("failed_attempts_total", "How often a destination could not be reached.", counter,
		func(f transport.Figures) int64 { return f.FailedAttempts }),
	ofTransport("fragments_sent_total", "Parts of large messages sent.", counter,
		func(f transport.Figures) int64 { return f.FragmentsSent }),
	ofTransport("fragments_received_total", "Parts of large messages received.", counter,
		func(f transport.Figures) int64 { return f.FragmentsReceived }),
	ofTransport("runs_sealed_total", "Batches of messages of one conversation that were sealed for another database.", counter,
		func(f transport.Figures) int64 { return f.Sealed }),
	ofTransport("runs_opened_total", "Sealed batches of messages that were opened.", counter,
		func(f transport.Figures) int64 { return f.Opened }),
	ofTransport("runs_discarded_total", "Batches and parts of messages that were discarded because they could not be opened.", counter,
		func(f transport.Figures) int64 { return f.Discarded }),
	ofTransport("answers_forged_total", "Answers to sealed messages that the other side had not signed.", counter,
		func(f transport.Figures) int64 { return f.Forged }),
	ofTransport("superseded", "1 when another copy of the database speaks for it.", gauge,
		func(f transport.Figures) int64 {
			if f.IsSuperseded {
				return 1
			}
			return 0
		}),
	ofTransport("connections", "Connections of this daemon with other servers.", gauge,
		func(f transport.Figures) int64 { return f.Connections }),
	ofTransport("bytes_sent_total", "Bytes that this daemon has sent to other servers.", counter,
		func(f transport.Figures) int64 { return f.BytesSent }),
	ofTransport("bytes_received_total", "Bytes that it has received from them.", counter,
		func(f transport.Figures) int64 { return f.BytesReceived }),
	ofTransport("corrupted_total", "Connections that ended because the other end did not keep to the protocol.", counter,
		func(f transport.Figures) int64 { return f.Corrupted }),
	ofTransport("refused_sockets_total", "Connections that were closed before it was known who is there.", counter,
		func(f transport.Figures) int64 { return f.RefusedSockets }),
	ofTransport("forwarded_total", "Messages that this daemon has passed on.", counter,
		func(f transport.Figures) int64 { return f.Forwarded }),
	ofTransport("forward_dropped_total", "Messages that it should have passed on and has not.", counter,
		func(f transport.Figures) int64 { return f.ForwardDropped }),
	ofTransport("forward_pending_bytes", "Bytes of messages that it is passing on just now.", gauge,
		func(f transport.Figures) int64 { return f.ForwardPendingBytes }),
}
