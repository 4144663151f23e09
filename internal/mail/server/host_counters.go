package server

import (
	"context"
	"math"
	"path/filepath"
	"sync/atomic"
	"time"

	governorstore "github.com/parley-broker/parley/internal/store/governor"
	hoststore "github.com/parley-broker/parley/internal/store/host"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// measuredLogBytes is how the database names the bytes of log that its server has written.
const measuredLogBytes = "log bytes"

// serverLog is how much the server of the database writes to its log.
type serverLog struct {
	recent            hoststore.Recent
	bytes, perMessage atomic.Uint64 // bits of a float64
}

// observe records how much was written when so many messages had been categorized.
func (l *serverLog) observe(now time.Time, bytes float64, messages int64) {
	l.bytes.Store(math.Float64bits(bytes))
	grown, _ := l.recent.Add(now, map[string]float64{"bytes": bytes, "messages": float64(messages)})
	if grown["messages"] > 0 {
		l.perMessage.Store(math.Float64bits(hoststore.Ratio(grown["bytes"], grown["messages"])))
	}
}

// measureDatabase measures what the database knows of pressure, and keeps what it has written.
func (g *governing) measureDatabase(store mailstore.Pressure) governorstore.Source {
	return func(ctx context.Context) (map[string]float64, error) {
		values, err := store.Measure(ctx)
		if bytes, is := values[measuredLogBytes]; is {
			delete(values, measuredLogBytes)
			g.log.observe(time.Now(), bytes, g.server.tally.categorized.Load())
		}
		return values, err
	}
}

// watchDisks has the disks of the volumes that are watched counted.
func (g *governing) watchDisks(folders map[string]string) {
	machine := &hoststore.Machine{Root: g.root, Volumes: make(map[string]string)}
	for volume, folder := range folders {
		if path, err := filepath.EvalSymlinks(folder); err == nil {
			machine.Volumes[volume] = path
		}
	}
	g.machine.Store(machine)
}

// countHost counts the use of the machine, and the log that the server of the database writes.
func (s *Server) countHost(f *figures) {
	f.gauge("Database", "Log Bytes/Message", "", math.Float64frombits(s.governing.log.perMessage.Load()))
	*f = append(*f, mailstore.Counter{
		Object: "Database", Counter: "Log Bytes Total", Value: math.Float64frombits(s.governing.log.bytes.Load()), IsTotal: true,
	})
	machine := s.governing.machine.Load()
	if machine == nil {
		return
	}
	for _, c := range machine.Read(time.Now()) {
		*f = append(*f, mailstore.Counter{Object: "Host", Counter: c.Name, Instance: c.Instance, Value: c.Value, IsTotal: c.IsTotal})
	}
}
