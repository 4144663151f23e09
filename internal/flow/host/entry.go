package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// entryInterval is how often a node asks for a name that another process has.
const entryInterval = time.Second

// node is this process as it serves the host.
func (h *Host) node() flowstore.Node {
	return flowstore.Node{Host: h.name, Name: h.server.config.Node, Process: h.server.process}
}

// enter has this process take the name of its node, before anything is served: adapters name temporary files after it. A process that was
// killed leaves its name for some seconds, so one that is started again waits for that. Another one that reports meanwhile is there: then
// the server fails. It reports whether the host may be served.
func (h *Host) enter(ctx context.Context) bool {
	failures := backoff.NewFailures(h.logger, "the node cannot report that it serves the host")
	var holder time.Time // when the process that has the name had reported, as it was first seen
	for ctx.Err() == nil {
		taken, err := h.tryToEnter(ctx, &holder)
		switch {
		case err == nil && taken == nil:
			return true
		case ctx.Err() != nil:
		case err == nil:
			h.reload.wait(ctx, entryInterval)
		case pgdb.SQLState(err) == flowstore.NameTaken:
			h.server.fail(err)
			return false
		default:
			h.reload.wait(ctx, failures.Failed(err))
		}
	}
	return false
}

// tryToEnter reports once. taken is the refusal while it is not known whether the process that has the name is there.
func (h *Host) tryToEnter(ctx context.Context, holder *time.Time) (taken, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	written, err := json.Marshal(h.report())
	if err != nil {
		return nil, err
	}
	taken = h.node().Report(ctx, h.pool, written, false)
	if pgdb.SQLState(taken) != flowstore.NameTaken {
		return nil, taken
	}
	reported, err := h.node().ReportedAt(ctx, h.pool)
	switch {
	case err != nil:
		return nil, err
	case holder.IsZero():
		*holder = reported
		h.logger.Warn("another process has the name of this node, or was killed a moment ago; waiting to see which",
			"node", h.server.config.Node, "reported_at", reported)
	case !reported.Equal(*holder):
		return nil, taken
	}
	return taken, nil
}
