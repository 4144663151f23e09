package server

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	governorstore "github.com/parley-broker/parley/internal/store/governor"
	hoststore "github.com/parley-broker/parley/internal/store/host"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// The resources that only mail measures, by their names in the thresholds.
const (
	resourceUncommitted = "uncommitted"  // messages handed to the committer that are not durable yet
	resourceBatchPoints = "batch points" // chunks of their bodies
)

// dehydratedShare is to which part of its limit the body cache is cut while bodies are dehydrated.
const dehydratedShare = 16

// governing measures resources while the server runs, does what follows, and reports how the daemon is doing.
type governing struct {
	server   *Server
	governor atomic.Pointer[governorstore.Governor]
	latency  governorstore.Latency
	levels   levels
	report   standing
	// isFlushed is whether caches were flushed since the action began.
	isFlushed bool
	log       serverLog
	machine   atomic.Pointer[hoststore.Machine]
	root      fs.FS // of the machine's files; nil for those that there are, others for tests
	// interval is how often resources are measured, 0 for the usual; measured gives some in the place of what was measured. For tests.
	interval time.Duration
	measured governorstore.Source
}

// run governs until ctx ends.
func (g *governing) run(ctx context.Context) {
	s := g.server
	folders := g.volumes(ctx)
	g.watchDisks(folders)
	store := mailstore.Pressure{DB: s.config.Pool}
	config := governorstore.Config{
		Store: store, System: "mail", Node: s.config.Name, Logger: s.config.Logger, OnPoll: g.polled, Interval: g.interval,
		Sources: []governorstore.Source{
			g.measureDatabase(store), governorstore.Memory(), governorstore.Volumes(folders), g.latency.Source(),
			governorstore.Gauge(resourceUncommitted, func() float64 { return float64(s.committer.Waiting()) }),
			governorstore.Gauge(resourceBatchPoints, func() float64 { return float64((s.committer.WaitingBytes() + chunkSize - 1) / chunkSize) }),
		},
		Adjust: func(t governorstore.Threshold) governorstore.Threshold {
			if folder := folders[t.Resource]; folder != "" {
				if size, err := governorstore.VolumeBytes(folder); err == nil {
					return t.OnVolume(size)
				}
			}
			return t
		},
	}
	if g.measured != nil {
		config.Sources = append(config.Sources, g.measured)
	}
	g.governor.Store(governorstore.New(config))
	s.repeat(ctx, "resources cannot be measured", nil, time.Second, func(ctx context.Context) (bool, error) {
		return false, g.governor.Load().Run(ctx)
	})
	g.stopped(ctx)
}

// isActive reports whether an action is to be taken under pressure.
func (g *governing) isActive(action string) bool {
	running := g.governor.Load()
	return running != nil && running.IsActive(action)
}

// polled does what follows a poll.
func (g *governing) polled(ctx context.Context, p governorstore.Pressure) {
	s := g.server
	s.pressure.ease()
	if s.pressure.takes(actDehydrate) {
		s.bodies.resize(s.config.BodyCache / dehydratedShare)
	} else {
		s.bodies.resize(s.config.BodyCache)
	}
	isFlushing := s.pressure.takes(actFlushCaches)
	if isFlushing && !g.isFlushed {
		s.flushCaches()
	}
	g.isFlushed = isFlushing
	g.levels.observe(p, time.Now())
	g.reportIfDue(ctx, p)
}

// flushCaches forgets what can be asked for again: answers of name servers, those of connectors too, and of the directory.
func (s *Server) flushCaches() {
	s.resolver.Flush()
	if used := s.settings.Load(); used != nil {
		for _, resolver := range used.sending.resolvers {
			resolver.Flush()
		}
	}
	s.directory.forget()
}

// volumes are the folders whose volumes are watched, by resource: those that can be read from here.
func (g *governing) volumes(ctx context.Context) map[string]string {
	s := g.server
	folders := map[string]string{
		governorstore.TemporaryVolume: s.receiver.Spool.Path(), governorstore.DataVolume: s.config.DataFolder,
		governorstore.LogVolume: s.config.LogFolder,
	}
	if folders[governorstore.DataVolume] == "" && isLocal(s.config.Pool) {
		folders[governorstore.DataVolume] = mailstore.DataFolder(ctx, s.config.Pool)
	}
	if data := folders[governorstore.DataVolume]; data != "" && folders[governorstore.LogVolume] == "" {
		folders[governorstore.LogVolume] = data + "/pg_wal"
	}
	for resource, folder := range folders {
		if folder == "" {
			delete(folders, resource)
		} else if _, err := governorstore.VolumeBytes(folder); err != nil {
			s.config.Logger.Warn("a volume is not watched: its folder cannot be read from here", "resource", resource, "error", err)
			delete(folders, resource)
		}
	}
	s.config.Logger.Info("volumes are watched", slog.Any("folders", folders))
	return folders
}

// isLocal is whether the server of the database is on this machine, so that its folders are.
func isLocal(pool *pgxpool.Pool) bool {
	host := pool.Config().ConnConfig.Host
	return strings.HasPrefix(host, "/") || host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// inTransaction runs something in a transaction, and observes how long its commit takes.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, committed func(time.Duration), do func(pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := do(tx); err != nil {
		return err
	}
	began := time.Now()
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if committed != nil {
		committed(time.Since(began))
	}
	return nil
}
