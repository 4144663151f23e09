package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// Program is an orchestration in one version, ready to run. Any number of goroutines may use it.
type Program interface {
	// Activations are the receives that begin instances.
	Activations() []process.Activation
	// Run gives what an instance does because of an event. A state of nil is that of an instance that begins.
	Run(ctx context.Context, w process.World, state json.RawMessage, e process.Event) (process.Step, error)
}

// Compiler makes a program of the settings of an orchestration.
type Compiler func(name string, settings json.RawMessage) (Program, error)

// Orchestration is one that a host serves, in its newest version.
type Orchestration struct {
	Name       string
	Number     int64 // as a subscriber
	Version    int
	State      string // Bound, Stopped or Started
	Settings   json.RawMessage
	Concurrent int // batches that run at once
	Batch      int // messages of a transaction
}

// compiled is a program with what it needs to choose an activation.
type compiled struct {
	Program
	activations []process.Activation
	matcher     *match.Matcher // nil where there is one activation
}

func newCompiled(p Program) *compiled {
	c := &compiled{Program: p, activations: p.Activations()}
	if len(c.activations) > 1 {
		groups := []match.Group{}
		for i, a := range c.activations {
			for _, predicates := range a.Filter {
				groups = append(groups, match.Group{SendPort: int64(i), Predicates: predicates})
			}
		}
		c.matcher = match.New(1, groups)
	}
	return c
}

// activation gives the receive that a message begins. The message is there because of one of them, but filters may have changed since.
func (c *compiled) activation(promoted map[string]string) (receive string, err error) {
	if len(c.activations) == 0 {
		return "", fmt.Errorf("the orchestration has no receive that begins instances")
	}
	if c.matcher != nil {
		if found := c.matcher.Match(promoted); len(found) > 0 {
			return c.activations[slices.Min(found)].Receive, nil
		}
	}
	return c.activations[0].Receive, nil
}

// programs keeps the programs of versions that instances need.
type programs struct {
	compile Compiler
	mu      sync.Mutex
	made    map[programKey]*compiled
	order   []programKey
}

type programKey struct {
	name    string
	version int
}

// keptPrograms is how many programs are kept: more are compiled when they are needed.
const keptPrograms = 200

func (p *programs) find(key programKey) *compiled {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[key]
}

func (p *programs) keep(key programKey, c *compiled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = map[programKey]*compiled{}
	}
	if p.made[key] == nil {
		p.order = append(p.order, key)
	}
	p.made[key] = c
	for len(p.order) > keptPrograms {
		delete(p.made, p.order[0])
		p.order = p.order[1:]
	}
}

// of gives the program of a version.
func (p *programs) of(ctx context.Context, db pgdb.DB, host string, o Orchestration, version int) (*compiled, error) {
	key := programKey{o.Name, version}
	if found := p.find(key); found != nil {
		return found, nil
	}
	settings, err := flowstore.Program(ctx, db, host, o.Name, version)
	if err != nil {
		return nil, err
	}
	if settings == nil {
		return nil, &process.Fault{
			Code: "process.step", Message: fmt.Sprintf("version %d of orchestration %q is not there any more", version, o.Name),
			Remedy: "Migrate the instance, by applying the orchestration with running: migrate, or terminate it.",
		}
	}
	made, err := p.compile(o.Name, settings)
	if err != nil {
		return nil, fmt.Errorf("compile version %d of orchestration %q: %w", version, o.Name, err)
	}
	c := newCompiled(made)
	p.keep(key, c)
	return c, nil
}
