package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// figures collects counters under the names of the specification (spec mail 18).
type figures []mailstore.Counter

func (f *figures) gauge(object, counter, instance string, value float64) {
	*f = append(*f, mailstore.Counter{Object: object, Counter: counter, Instance: instance, Value: value})
}

func (f *figures) total(object, counter, instance string, value int64) {
	*f = append(*f, mailstore.Counter{Object: object, Counter: counter, Instance: instance, Value: float64(value), IsTotal: true})
}

// Counters gives the counts of the daemon and those of the database. Counts of the database are left out, with an error, while it is away.
func (s *Server) Counters(ctx context.Context) ([]mailstore.Counter, error) {
	counted := s.counted()
	queues, err := mailstore.Counters(ctx, s.config.Pool)
	if err != nil {
		return counted, fmt.Errorf("read the counters of mail: %w", err)
	}
	return append(counted, queues...), nil
}

// counted holds the counts of the daemon.
func (s *Server) counted() []mailstore.Counter {
	var f figures
	s.countReceived(&f)
	f.carried("SMTP Send", &s.tally.remote)
	f.carried("Store Driver", &s.tally.mailbox)
	f.total("Store Driver", "Duplicates Total", "", s.tally.mailbox.duplicates.Load())
	f.total("Store Driver", "Messages Delivered To Services", "", s.tally.toServices.Load())
	f.total("DSN", "Failure DSNs Total", "", s.tally.failureReports.Load())
	f.total("DSN", "Delay DSNs Total", "", s.tally.delayReports.Load())
	f.total("DSN", "Success DSNs Total", "", s.tally.successReports.Load())
	s.countResolved(&f)
	s.countLatency(&f)
	hits, misses := s.resolver.Statistics()
	f.total("DNS", "Cache Hits", "", int64(hits))
	f.total("DNS", "Cache Misses", "", int64(misses))
	s.countDatabase(&f)
	s.countPressure(&f)
	s.countHost(&f)
	return f
}

// withoutHistograms leaves out what a row of the database cannot have; the percentiles stand beside it.
func withoutHistograms(counters []mailstore.Counter) []mailstore.Counter {
	return slices.DeleteFunc(counters, func(c mailstore.Counter) bool { return c.Histogram != nil })
}

// countReceived counts the messages that came by SMTP.
func (s *Server) countReceived(f *figures) {
	const object = "SMTP Receive"
	c := s.receiver.Counters()
	messages, bytes := c.Messages.Load(), c.Bytes.Load()
	f.gauge(object, "Connections Current", "", float64(s.receiver.ConnectionsNow()))
	connections, encrypted, authenticated := c.Connections.Load(), c.Encrypted.Load(), c.Authenticated.Load()
	f.total(object, "Connections Total", "", connections)
	f.total(object, "TLS Connections Total", "", encrypted)
	f.gauge(object, "TLS Connections Share", "", float64(encrypted)/float64(max(connections, 1)))
	f.total(object, "Authenticated Connections Total", "", authenticated)
	f.gauge(object, "Authenticated Connections Share", "", float64(authenticated)/float64(max(connections, 1)))
	f.total(object, "Messages Received Total", "", messages)
	f.total(object, "Message Bytes Received Total", "", bytes)
	f.gauge(object, "Average Bytes/Message", "", float64(bytes)/float64(max(messages, 1)))
	for limit, refused := range c.RefusedConnections() {
		f.total(object, "Refused", limit, refused)
	}
	f.total(object, "Refused", "message", c.Rejected.Load())
	f.total(object, "Refused", "authentication", c.AuthFailures.Load())
	classes := [...]string{"pressure, anonymous", "pressure, users", "pressure, own nodes"}
	for class := receive.AnonymousPeer; class <= receive.OwnNode; class++ {
		f.total(object, "Refused", classes[class], s.pressure.refused[class].Load())
	}
	f.total(object, "Tarpitted", "", s.pressure.delayed.Load())
	f.total(object, "Refusals Tarpitted", "", c.Tarpitted.Load())
	f.gauge(object, "Tarpit Delay Seconds", "", s.pressure.delayNow().Seconds())
	f.gauge(object, "Spool Bytes In Memory", "", float64(s.receiver.Spool.InMemory()))
}

// carried counts the messages that went to next hops of one kind.
func (f *figures) carried(object string, c *carried) {
	delivered, messages := c.byClass[send.Delivered].Load(), c.messages.Load()
	f.gauge(object, "Connections Current", "", float64(c.open.Load()))
	f.total(object, "Connections Total", "", c.connections.Load())
	f.total(object, "Connection Failures Total", "", c.connectionFailures.Load())
	f.total(object, "Delivery Attempts Total", "", c.attempts.Load())
	f.total(object, "Messages Sent Total", "", messages)
	f.total(object, "Message Bytes Sent Total", "", c.bytes.Load())
	f.gauge(object, "Recipients/Message", "", float64(delivered)/float64(max(messages, 1)))
	for class := send.Deferred; class <= send.Rerouted; class++ {
		f.total(object, "Recipients", class.String(), c.byClass[class].Load())
	}
}

// countDatabase gives the daemon's counts of commits and of the body cache.
func (s *Server) countDatabase(f *figures) {
	const object = "Database"
	commits := s.tally.commits.Load()
	hits, misses := s.bodies.hits.Load(), s.bodies.misses.Load()
	bytes, limit := s.bodies.size()
	f.gauge(object, "Body Cache Bytes", "", float64(bytes))
	f.gauge(object, "Body Cache Limit Bytes", "", float64(limit))
	f.total(object, "Body Cache Hits", "", hits)
	f.total(object, "Body Cache Misses", "", misses)
	f.total(object, "Bodies Dehydrated", "", s.bodies.dehydrated.Load())
	f.gauge(object, "Body Cache Hit Ratio", "", float64(hits)/float64(max(hits+misses, 1)))
	reads, writes := s.bodies.reads.Load(), s.bodies.writes.Load()
	f.total(object, "Body Reads Total", "", reads)
	f.total(object, "Body Bytes Read Total", "", s.bodies.bytesRead.Load())
	f.total(object, "Body Writes Total", "", writes)
	f.total(object, "Body Bytes Written Total", "", s.bodies.bytesWritten.Load())
	sent := s.tally.remote.messages.Load() + s.tally.mailbox.messages.Load()
	f.gauge(object, "Body Reads/Message", "", float64(reads)/float64(max(sent, 1)))
	f.gauge(object, "Body Writes/Message", "", float64(writes)/float64(max(s.tally.committed.Load(), 1)))
	f.gauge(object, "Uncommitted Units", "", float64(s.committer.Waiting()))
	f.total(object, "Commits Total", "", commits)
	f.total(object, "Commit Failures Total", "", s.tally.commitFailures.Load())
	f.total(object, "Messages Committed Total", "", s.tally.committed.Load())
	f.gauge(object, "Average Batch Seconds", "", float64(s.tally.commitTime.Load())/1e9/float64(max(commits, 1)))
}

// countPressure is the account of levels.
func (s *Server) countPressure(f *figures) {
	const object = "Back Pressure"
	accounts, highest, active := s.governing.levels.read()
	f.gauge(object, "Highest Level", "", float64(highest))
	f.gauge(object, "Actions Taken", "", float64(len(active)))
	for _, account := range accounts {
		name := account.state.Resource
		f.gauge(object, "Level", name, float64(account.state.Level))
		if account.state.IsMeasured {
			f.gauge(object, "Value", name, account.state.Value)
		}
		f.total(object, "Transitions", name, int64(account.transitions))
		for level := governorstore.Medium; level <= governorstore.Floor; level++ {
			if account.seconds[level] == 0 && account.longest[level] == 0 {
				continue
			}
			f.gauge(object, "Seconds In "+level.String(), name, account.seconds[level])
			f.gauge(object, "Longest Seconds In "+level.String(), name, account.longest[level])
		}
	}
}
