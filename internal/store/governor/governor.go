package governor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The events of the specification, section 14.4.
const (
	EventRose          = 15004
	EventFell          = 15005
	EventVolumeRefused = 15006
	EventMemoryRefused = 15007
)

const (
	pollInterval   = 2 * time.Second
	policyInterval = 10 * time.Second
	unrecordedMax  = 1000
)

// Source measures resources. It returns what it could measure, with the error of what it could not.
type Source func(ctx context.Context) (map[string]float64, error)

// Store is where a system keeps its policy, and the history.
type Store interface {
	Policy(ctx context.Context) ([]Threshold, []Action, error)
	Record(ctx context.Context, e Event) error
}

// Config holds the parts and the settings of a governor.
type Config struct {
	Store  Store
	System string
	Node   string // which daemon, for the history
	Logger *slog.Logger
	// Sources measure; what several measure, the last one says.
	Sources []Source
	// OnPoll is called after each poll; nil for none.
	OnPoll func(context.Context, Pressure)
	// Adjust changes a threshold for what this machine has, such as the size of a volume; nil for none.
	Adjust func(Threshold) Threshold
	// Interval is how often resources are measured; 0 means 2 s.
	Interval time.Duration
}

// Pressure is the result of a poll.
type Pressure struct {
	Level   Level
	States  []State
	Changes []Change
	Active  []string // the actions that are to be taken
}

// Governor polls resources and says which actions are to be taken.
type Governor struct {
	config     Config
	machine    Machine
	policyRead time.Time
	unrecorded []Event
	failing    map[string]bool // what has been logged as failing

	mu     sync.RWMutex
	active map[string]bool
}

// Event is a change, as it is written to the log and the history.
type Event struct {
	ID       int // 15004 to 15007
	Node     string
	Resource string
	From, To Level
	Value    float64
	Actions  []string // what is done from now on
	Message  string
}

// New returns a governor that has measured nothing yet.
func New(config Config) *Governor {
	config.Interval = cmp.Or(config.Interval, pollInterval)
	return &Governor{config: config, failing: map[string]bool{}}
}

// IsActive reports whether an action is to be taken now. Any goroutine may ask, as often as it likes.
func (g *Governor) IsActive(action string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.active[action]
}

// Run polls until the context ends. It fails only when the policy cannot be read at the beginning.
func (g *Governor) Run(ctx context.Context) error {
	if err := g.readPolicy(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(g.config.Interval)
	defer ticker.Stop()
	for {
		g.Poll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if time.Since(g.policyRead) >= policyInterval {
			g.report("read the policy", g.readPolicy(ctx))
		}
	}
}

// Poll measures once, and reports what has changed. [Governor.Run] does it; it is for tests and for a first poll before work begins.
func (g *Governor) Poll(ctx context.Context) Pressure {
	if g.policyRead.IsZero() {
		g.report("read the policy", g.readPolicy(ctx))
	}
	values := map[string]float64{}
	for i, source := range g.config.Sources {
		measured, err := source(ctx)
		g.report(fmt.Sprintf("measure resources, source %d", i), err)
		maps.Copy(values, measured)
	}
	changes := g.machine.Poll(values)
	p := Pressure{Level: g.machine.Level(), States: g.machine.States(), Changes: changes, Active: g.machine.Active()}
	g.mu.Lock()
	g.active = map[string]bool{}
	for _, name := range p.Active {
		g.active[name] = true
	}
	g.mu.Unlock()
	for _, change := range changes {
		g.announce(ctx, p, change)
	}
	g.record(ctx)
	if g.config.OnPoll != nil {
		g.config.OnPoll(ctx, p)
	}
	return p
}

// announce writes the events of a change to the log and keeps them for the history.
func (g *Governor) announce(ctx context.Context, p Pressure, change Change) {
	event := Event{
		Node: g.config.Node, Resource: change.Resource, From: change.From, To: change.To, Value: change.Value, Actions: p.Active,
	}
	details := describe(p)
	id, verb := EventRose, "rose"
	if change.To < change.From {
		id, verb = EventFell, "fell"
	}
	event.ID = id
	event.Message = fmt.Sprintf("pressure of %s %s from %s to %s: %s", change.Resource, verb, change.From, change.To, details)
	g.add(ctx, event, p)
	if change.To < High || change.To < change.From {
		return
	}
	event.From = change.To
	switch {
	case strings.HasSuffix(change.Resource, "volume"):
		event.ID = EventVolumeRefused
		event.Message = fmt.Sprintf("work is refused because %s has too little space: free some, or make it larger: %s",
			change.Resource, details)
		g.add(ctx, event, p)
	case change.Resource == ProcessMemory:
		event.ID = EventMemoryRefused
		event.Message = "work is refused because this process uses too much memory: give it more, or restart it: " + details
		g.add(ctx, event, p)
	}
}

// add logs an event and keeps it for the history. The text of the history has every resource; the log has the one that has changed, with
// its thresholds, the actions that are taken and, unless the pressure fell, the remedy.
func (g *Governor) add(ctx context.Context, e Event, p Pressure) {
	attributes := []any{"resource", e.Resource, "from", e.From.String(), "to", e.To.String()}
	if i := slices.IndexFunc(p.States, func(s State) bool { return s.Resource == e.Resource }); i >= 0 {
		attributes = append(attributes, "value", p.States[i].measured(), "thresholds", p.States[i].thresholds())
	}
	attributes = append(attributes, "actions", actions(p))
	if remedy := remedies[e.Resource]; remedy != "" && e.ID != EventFell {
		attributes = append(attributes, "remedy", remedy)
	}
	attributes = append(attributes, "event_id", e.ID, "system", g.config.System, "node", e.Node)
	switch log := g.config.Logger.With(attributes...); e.ID {
	case EventRose:
		log.WarnContext(ctx, "pressure of a resource rose")
	case EventFell:
		log.InfoContext(ctx, "pressure of a resource fell")
	case EventVolumeRefused:
		log.ErrorContext(ctx, "work is refused because a volume has too little space")
	case EventMemoryRefused:
		log.ErrorContext(ctx, "work is refused because this process uses too much memory")
	}
	g.unrecorded = append(g.unrecorded, e)
	// A database that is away for long loses the oldest of the history; the log has that they happened.
	if extra := len(g.unrecorded) - unrecordedMax; extra > 0 {
		g.unrecorded = slices.Delete(g.unrecorded, 0, extra)
	}
}

// describe writes every resource with its value, level and thresholds, and what is disabled.
func describe(p Pressure) string {
	var text strings.Builder
	for i, s := range p.States {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(&text, "%s = %s [%s] [%s]", s.Resource, s.measured(), s.Level, s.thresholds())
	}
	return text.String() + ". Actions: " + actions(p)
}

// measured writes the value of a resource with its unit.
func (s State) measured() string {
	if !s.IsMeasured {
		return "not measured"
	}
	return strings.TrimSpace(figure(s.Value) + " " + s.Unit)
}

func (s State) thresholds() string {
	return fmt.Sprintf("Normal=%s Medium=%s High=%s", figure(s.NormalBelow), figure(s.MediumAt), figure(s.HighAt))
}

// actions lists what is done now.
func actions(p Pressure) string { return cmp.Or(strings.Join(p.Active, ", "), "nothing") }

// figure writes a value in full, to two places.
func figure(value float64) string { return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64) }

// record writes what has not been written to the history yet.
func (g *Governor) record(ctx context.Context) {
	for len(g.unrecorded) > 0 {
		err := g.config.Store.Record(ctx, g.unrecorded[0])
		g.report("record the history of pressure", err)
		if err != nil {
			return
		}
		g.unrecorded = g.unrecorded[1:]
	}
}

// report logs that something fails when it begins to, and when it no longer does. The end of the governor itself is no failure.
func (g *Governor) report(what string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	switch {
	case err != nil && !g.failing[what]:
		g.config.Logger.Warn("the governor fails", "task", what, "error", err, "system", g.config.System)
	case err == nil && g.failing[what]:
		g.config.Logger.Info("the governor goes on", "task", what, "system", g.config.System)
	}
	g.failing[what] = err != nil
}

// readPolicy reads thresholds and actions.
func (g *Governor) readPolicy(ctx context.Context) error {
	thresholds, actions, err := g.config.Store.Policy(ctx)
	if err != nil {
		return err
	}
	if g.config.Adjust != nil {
		for i, t := range thresholds {
			thresholds[i] = g.config.Adjust(t)
		}
	}
	g.machine.SetPolicy(thresholds, actions)
	g.policyRead = time.Now()
	return nil
}
