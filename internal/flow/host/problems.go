package host

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The codes of problems, as parley_flow.diagnosis_checks has them.
const (
	problemConfiguration = "flow-node-definitions"
	problemLocation      = "flow-location"
	problemPort          = "flow-node-port"
	problemPaused        = "flow-location-paused"
)

// errEndedEarly is the error of a receiver that has returned although nobody asked it to.
var errEndedEarly = errors.New("the receiver has ended by itself")

// problem is something that a node cannot do.
type problem struct {
	Code   string    `json:"code"`
	Kind   string    `json:"kind"`
	Object string    `json:"object"`
	Cause  string    `json:"cause"`
	Since  time.Time `json:"since"`
}

// problems lists the things that a host cannot do on this node now.
type problems struct {
	mu      sync.Mutex
	found   []problem
	changed *signal
}

// set says what is wrong with an object; nil: nothing any more. It reports whether that is new.
func (p *problems) set(code, kind, object string, err error) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.found, func(f problem) bool { return f.Code == code && f.Kind == kind && f.Object == object })
	switch {
	case err == nil && at < 0:
		return false
	case err == nil:
		p.found = slices.Delete(p.found, at, at+1)
	case at < 0:
		p.found = append(p.found, problem{code, kind, object, pgdb.Storable(err.Error()), time.Now()})
	case p.found[at].Cause == pgdb.Storable(err.Error()):
		return false
	default:
		p.found[at].Cause = pgdb.Storable(err.Error())
	}
	p.changed.send()
	return true
}

// all gives them.
func (p *problems) all() []problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]problem{}, p.found...)
}
