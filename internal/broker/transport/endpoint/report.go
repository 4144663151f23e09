package endpoint

import (
	"context"
	"net"
	"reflect"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/link"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const (
	reportInterval = time.Second
	// repeatInterval is how often a report is repeated that has not changed: the database believes in connections for 15 seconds, in
	// counters alone for some minutes.
	repeatInterval     = 5 * time.Second
	repeatIdleInterval = time.Minute
	reportTimeout      = 5 * time.Second
	// forwardedMax is how many messages on their way through are reported.
	forwardedMax = 1000
)

// Figures reports what the database has transmitted and taken in, and what the links of the daemon do.
func (d *Database) Figures() (f transport.Figures) {
	d.fill(&f)
	d.endpoint.fill(&f, d.endpoint.Connections())
	return f
}

func (d *Database) fill(f *transport.Figures) {
	d.tally.fill(f)
	if d.guard != nil {
		c := d.guard.Counts()
		f.Sealed, f.Opened, f.Discarded, f.Forged = c.Sealed, c.Opened, c.Corrupted, c.Forged
	}
}

func (e *Endpoint) fill(f *transport.Figures, states []link.ConnectionState) {
	for _, state := range states {
		if state.State == link.LoggedIn {
			f.Connections++
		}
		f.OpenSends += int64(state.SendsPosted)
		f.OpenReceives += int64(state.ReceivesPosted)
		if state.IsAccept {
			f.OpenReceiveBytes += state.OpenBytes
		} else {
			f.OpenSendBytes += state.OpenBytes
		}
	}
	all := e.totals()
	f.BytesSent, f.BytesReceived = all.TotalBytesSent, all.TotalBytesReceived
	f.FramesSent, f.FramesReceived = all.TotalSends, all.TotalReceives
	f.LinkMessagesSent, f.LinkMessagesReceived = all.TotalFragmentsSent, all.TotalFragmentsReceived
	if e.server != nil {
		c := e.server.Counters()
		f.Corrupted, f.RefusedSockets = c.Corrupted, c.Refused+c.Late
		f.Dropped += e.arrivals.Dropped()
	}
	forwarded := e.Forwarded()
	f.Forwarded, f.ForwardedBytes, f.ForwardDropped = forwarded.Messages, forwarded.Bytes, forwarded.Dropped
	f.ForwardPending, f.ForwardPendingBytes = forwarded.PendingMessages, forwarded.PendingBytes
}

// report reports to the databases what the daemon knows, while that is anything, until ctx ends.
func (e *Endpoint) report(ctx context.Context) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	var reporting sync.WaitGroup
	defer reporting.Wait()
	for {
		select {
		case <-ctx.Done():
			// A report that is under way may be written yet; it is taken back after that.
			reporting.Wait()
			for _, d := range e.all() {
				reporting.Go(func() { d.takeBack(context.WithoutCancel(ctx)) })
			}
			return
		case <-tick.C:
		}
		states := e.Connections()
		report := e.describe(states)
		for _, d := range e.all() {
			reported := report
			d.fill(&reported.Figures)
			e.fill(&reported.Figures, states)
			if d.isNews(reported, time.Now()) && d.reporting.CompareAndSwap(false, true) {
				reporting.Go(func() {
					defer d.reporting.Store(false)
					d.send(ctx, reported)
				})
			}
		}
	}
}

// isNews reports whether a database needs a report: something has changed, or the last report gets old.
func (d *Database) isNews(report transportstore.DaemonReport, now time.Time) bool {
	d.reportMu.Lock()
	defer d.reportMu.Unlock()
	isEmpty := len(report.Connections) == 0 && len(report.Forwarded) == 0
	if isEmpty && !d.hasReported && report.Endpoint == nil {
		return report.Figures != (transport.Figures{})
	}
	interval := repeatInterval
	if isEmpty {
		interval = repeatIdleInterval
	}
	return now.Sub(d.reportedAt) >= interval || !reflect.DeepEqual(report, d.reported)
}

func (d *Database) send(ctx context.Context, report transportstore.DaemonReport) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	d.reportMu.Lock()
	d.hasReported = true
	d.reportMu.Unlock()
	if err := transportstore.ReportDaemon(ctx, d.inbox.DB(), d.endpoint.id, d.endpoint.config.Name, report); err != nil {
		return // the database is away: the next report has all
	}
	d.reportMu.Lock()
	defer d.reportMu.Unlock()
	d.reported, d.reportedAt = report, time.Now()
}

// takeBack takes the report of a daemon back that stops.
func (d *Database) takeBack(ctx context.Context) {
	d.reportMu.Lock()
	hasReported := d.hasReported
	d.reportMu.Unlock()
	if !hasReported {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if err := transportstore.ForgetDaemon(ctx, d.inbox.DB(), d.endpoint.id); err != nil {
		d.endpoint.config.Logger.Debug("the report of this daemon could not be taken back", "error", err)
	}
}

// describe gives the rows of the views.
func (e *Endpoint) describe(states []link.ConnectionState) (report transportstore.DaemonReport) {
	report.Endpoint = e.listening()
	for _, state := range states {
		one := transportstore.ConnectionReport{
			ConnectionID: state.ConnectionID, State: int(state.State), ConnectTime: moment(state.ConnectTime),
			LoginTime: moment(state.LoginTime), LastActivityTime: moment(state.LastActivityTime.Truncate(time.Second)),
			AuthenticationMethod: state.AuthenticationMethod, RemoteUserName: state.Identity, IsAccept: state.IsAccept,
			ReceivesPosted: state.ReceivesPosted, SendsPosted: state.SendsPosted,
			IsReceiveFlowControlled: state.IsReceiveFlowControlled, IsSendFlowControlled: state.IsSendFlowControlled,
			TotalBytesSent: state.TotalBytesSent, TotalBytesReceived: state.TotalBytesReceived,
			TotalFragmentsSent: state.TotalFragmentsSent, TotalFragmentsReceived: state.TotalFragmentsReceived,
			TotalSends: state.TotalSends, TotalReceives: state.TotalReceives, Address: state.Address, Software: state.Software,
		}
		if state.EncryptionAlgorithm != "" {
			one.EncryptionAlgorithm = &state.EncryptionAlgorithm
		}
		report.Connections = append(report.Connections, one)
	}
	if e.forwarder == nil {
		return report
	}
	for _, passing := range e.forwarder.Passing(forwardedMax) {
		one := transportstore.ForwardedReport{
			ConversationID: passing.ConversationID, IsInitiator: passing.FromInitiator, ToService: passing.ToService,
			FromService: passing.FromService, AdjacentAddress: passing.Address, Sequence: passing.FirstSequence,
			HopsRemaining: passing.Passage.HopsRemaining, TimeToLive: int(passing.Passage.TimeToLive.Seconds()),
			TimeConsumed: int(passing.Consumed.Seconds()),
		}
		if !passing.ToBroker.IsZero() {
			one.ToBroker = &passing.ToBroker
		}
		report.Forwarded = append(report.Forwarded, one)
	}
	return report
}

// listening returns where the daemon listens; nil when it does not.
func (e *Endpoint) listening() *transportstore.EndpointReport {
	if e.config.Network == nil {
		return nil
	}
	at, ok := e.config.Network.Listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	return &transportstore.EndpointReport{
		IPAddress: at.IP.String(), Port: at.Port, Forwards: e.config.Forward,
		ForwardSizeMB: e.config.forwardSize() >> 20,
	}
}

// moment gives a time, or nil for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
