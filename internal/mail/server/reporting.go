package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/receive"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

const (
	// reportInterval is how often the daemon reports how it is doing while nothing changes.
	reportInterval = 10 * time.Second
	// reportTimeout bounds the last report.
	reportTimeout = 5 * time.Second
	// certificateNotice is how long before its end a certificate is reported.
	certificateNotice = 30 * 24 * time.Hour
)

// The codes of what a daemon reports for parley diagnose; sql/mail/operations/findings.sql has their meanings.
const (
	problemBinding       = "mail-binding"
	problemConfiguration = "mail-configuration"
	problemCertificate   = "mail-certificate"
	problemExpired       = "mail-certificate-expired"
	problemExpiring      = "mail-certificate-expiring"
)

// standing holds the last report, and the faults.
type standing struct {
	at      time.Time
	actions []string
	level   governorstore.Level
	version int64

	mu       sync.Mutex
	problems map[string]mailstore.Problem // by code
	closed   map[object]string            // ways in that cannot be opened, and why
	causes   map[string]string            // by send connector: why its certificate cannot be used, as it was logged
}

// setProblem records a failure for the next report, or with nil that there is none.
func (g *governing) setProblem(code, kind string, err error) {
	g.report.mu.Lock()
	defer g.report.mu.Unlock()
	if err == nil {
		delete(g.report.problems, code)
		return
	}
	if g.report.problems == nil {
		g.report.problems = make(map[string]mailstore.Problem)
	}
	g.report.problems[code] = mailstore.Problem{Code: code, Kind: kind, Object: g.server.config.Name, Cause: err.Error()}
}

// setClosed records the ways in that cannot be opened, for the next report.
func (g *governing) setClosed(closed map[object]string) {
	g.report.mu.Lock()
	defer g.report.mu.Unlock()
	g.report.closed = closed
}

// reportIfDue reports after ten seconds, and at once when something has changed that others go by.
func (g *governing) reportIfDue(ctx context.Context, p governorstore.Pressure) {
	r, now, version := &g.report, time.Now(), g.server.settings.Load().version
	isSame := slices.Equal(r.actions, p.Active) && r.level == p.Level && r.version == version
	if isSame && now.Sub(r.at) < reportInterval {
		return
	}
	written := g.describe()
	written.IsStart = r.at.IsZero()
	began := time.Now()
	if err := mailstore.ReportDaemon(ctx, g.server.config.Pool, g.server.config.Name, written); err != nil {
		if ctx.Err() == nil {
			g.server.config.Logger.Warn("how the daemon is doing cannot be reported", "error", err)
		}
		return
	}
	// The report is a commit like others, and the only one while nothing arrives.
	g.latency.Observe(time.Since(began))
	r.at, r.actions, r.level, r.version = now, p.Active, p.Level, version
}

// stopped reports that the daemon has stopped.
func (g *governing) stopped(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	written := g.describe()
	written.IsStopped, written.Actions, written.Level = true, nil, governorstore.Normal.Column()
	if err := mailstore.ReportDaemon(ctx, g.server.config.Pool, g.server.config.Name, written); err != nil {
		g.server.config.Logger.Warn("it cannot be reported that the daemon has stopped", "error", err)
	}
}

// describe is how the daemon is doing.
func (g *governing) describe() mailstore.Daemon {
	accounts, level, active := g.levels.read()
	d := mailstore.Daemon{
		Host: g.server.host, ProcessID: os.Getpid(), Version: g.server.config.Version, Level: level.Column(), Actions: active,
		ConfigurationVersion: g.server.settings.Load().version, Problems: g.problems(time.Now()),
		Counters: withoutHistograms(g.server.counted()), Listeners: expanded(g.server.receiver.Addresses(), machineAddresses()),
	}
	for _, account := range accounts {
		s := account.state
		resource := mailstore.Resource{
			Resource: s.Resource, Unit: s.Unit, Level: s.Level.Column(), MediumAt: s.MediumAt, HighAt: s.HighAt,
		}
		if s.IsMeasured {
			resource.Value = &s.Value
		}
		d.Resources = append(d.Resources, resource)
	}
	return d
}

// problems are the present faults.
func (g *governing) problems(now time.Time) []mailstore.Problem {
	var found []mailstore.Problem
	g.report.mu.Lock()
	for _, code := range []string{problemBinding, problemConfiguration} {
		if problem, is := g.report.problems[code]; is {
			found = append(found, problem)
		}
	}
	for closed, cause := range g.report.closed {
		found = append(found, mailstore.Problem{
			Code: problemConfiguration, Kind: closed.kind, Object: closed.name, Cause: "This daemon cannot open it, and tries again: " + cause,
		})
	}
	g.report.mu.Unlock()
	settings := g.server.settings.Load()
	for left, err := range settings.unusable {
		found = append(found, mailstore.Problem{
			Code: problemConfiguration, Kind: left.kind, Object: left.name, Cause: "This daemon leaves it out: " + err.Error(), Cure: cure(err),
		})
	}
	for connector, written := range settings.receivers {
		if written.CertificateFile != "" && written.Enabled {
			content, _ := receive.ReadFile(g.server.equipment.folders, written.CertificateFile) // One that cannot be read has no end.
			found = append(found, expiry("receive connector", connector, written.CertificateFile, receive.EndOf(content), now)...)
		}
	}
	for connector, files := range settings.sending.certificates {
		if !settings.sending.isUsedBy(connector, g.server.config.Name, g.server.host) {
			continue
		}
		_, end, err := files.LoadWithEnd()
		g.logCause(connector, err)
		if err != nil {
			found = append(found, mailstore.Problem{
				Code: problemCertificate, Kind: "send connector", Object: connector,
				Cause: fmt.Sprintf("Its certificate cannot be used by %s: %s.", g.server.config.Name, err),
			})
		}
		found = append(found, expiry("send connector", connector, files.Certificate, end, now)...)
	}
	slices.SortFunc(found, func(a, b mailstore.Problem) int {
		if a.Code+a.Object < b.Code+b.Object {
			return -1
		}
		return 1
	})
	return found
}

// cure is the action that makes an object usable that is left out, where that is no change of its settings.
func cure(err error) string {
	if outside, is := errors.AsType[*hostfolders.NotPermittedError](err); is {
		return fmt.Sprintf("parley mail serve --folders %s  -- parley serve: --mail-folders; or another folder of those that the daemon has",
			filepath.Dir(outside.Path))
	}
	return ""
}

// logCause writes why the certificate of a send connector cannot be used, when that is another reason than before.
func (g *governing) logCause(connector string, err error) {
	cause := ""
	if file, is := errors.AsType[*receive.FileError](err); is {
		cause = file.Cause.Error()
	}
	g.report.mu.Lock()
	isSame := g.report.causes[connector] == cause
	if g.report.causes == nil {
		g.report.causes = make(map[string]string)
	}
	g.report.causes[connector] = cause
	g.report.mu.Unlock()
	if !isSame && cause != "" {
		receive.LogCause(g.server.config.Logger.With("send connector", connector), err)
	}
}

// expiry is the fault in the end of the certificate of a connector, zero where it cannot be read: that is reported otherwise.
func expiry(kind, connector, file string, end, now time.Time) []mailstore.Problem {
	switch left := end.Sub(now); {
	case end.IsZero():
	case left <= 0:
		return []mailstore.Problem{{
			Code: problemExpired, Kind: kind, Object: connector,
			Cause: fmt.Sprintf("Its certificate in %s has expired at %s.", file, end.UTC().Format(time.RFC3339)),
		}}
	case left < certificateNotice:
		return []mailstore.Problem{{
			Code: problemExpiring, Kind: kind, Object: connector,
			Cause: fmt.Sprintf("Its certificate in %s expires at %s.", file, end.UTC().Format(time.RFC3339)),
		}}
	}
	return nil
}
