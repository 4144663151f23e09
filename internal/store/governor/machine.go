package governor

import (
	"slices"
	"strings"
)

// Level is how much pressure a resource is under.
type Level int

// The levels.
const (
	Normal Level = iota
	Medium
	High
	Floor // High, and what is left is so little that nobody is excepted any more
)

func (l Level) String() string { return [...]string{"Normal", "Medium", "High", "Floor"}[l] }

// Column is the level as the schema writes it.
func (l Level) Column() string { return strings.ToUpper(l.String()) }

// Threshold says from which values on a resource is under pressure. It falls at lower values than it rises at, so that a value
// that swings around one of them does not change the level each time.
type Threshold struct {
	Resource, Unit string
	MediumAt       float64 // above it Normal becomes Medium
	HighAt         float64 // above it the level becomes High
	MediumBelow    float64 // below it High becomes Medium
	NormalBelow    float64 // below it Medium becomes Normal
	FloorAt        float64 // above it the level is Floor, until it is no longer above HighAt; 0: there is none
	ReserveBytes   int64   // of a volume: how much is to be left free; its size lowers the values ([Threshold.OnVolume])
	HistoryPolls   int     // after so many polls above Normal in a row actions that are kept for later begin; 0: there are none
}

// Action is the action of a system while a resource is at a level or above it.
type Action struct {
	Resource, Name string
	From           Level
	AfterHistory   bool // at Medium only when it has lasted
}

// State is how a resource is doing.
type State struct {
	Threshold
	Value      float64
	IsMeasured bool // Value is of this poll
	Level      Level
	Polls      int // above Normal, in a row
}

// Change is a resource that has another level than at the poll before.
type Change struct {
	Resource string
	From, To Level
	Value    float64
}

// Machine decides what pressure there is. It has no clock and asks nobody.
type Machine struct {
	states  []State // by resource
	actions []Action
}

// SetPolicy changes thresholds and actions. Resources that stay keep their levels.
func (m *Machine) SetPolicy(thresholds []Threshold, actions []Action) {
	states := make([]State, 0, len(thresholds))
	for _, t := range thresholds {
		state := State{Threshold: t}
		if i := slices.IndexFunc(m.states, func(s State) bool { return s.Resource == t.Resource }); i >= 0 {
			state = m.states[i]
			state.Threshold = t
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Resource, b.Resource) })
	m.states, m.actions = states, slices.Clone(actions)
}

// Poll takes what was measured. A resource that was not keeps its level: that nothing is known of it is no relief.
func (m *Machine) Poll(values map[string]float64) []Change {
	var changes []Change
	for i := range m.states {
		s := &m.states[i]
		value, ok := values[s.Resource]
		s.IsMeasured = ok
		if !ok {
			continue
		}
		s.Value = value
		before := s.Level
		s.Level = s.next(value)
		if s.Level == Normal {
			s.Polls = 0
		} else {
			s.Polls++
		}
		if s.Level != before {
			changes = append(changes, Change{Resource: s.Resource, From: before, To: s.Level, Value: value})
		}
	}
	return changes
}

// next is the level after a value.
func (s *State) next(value float64) Level {
	switch {
	case s.FloorAt > 0 && (value > s.FloorAt || s.Level == Floor && value > s.HighAt):
		return Floor
	case value > s.HighAt:
		return High
	case s.Level >= High && value >= s.MediumBelow:
		return High
	case value > s.MediumAt:
		return Medium
	case s.Level != Normal && value >= s.NormalBelow:
		return Medium
	default:
		return Normal
	}
}

// States returns how each resource is doing, by name.
func (m *Machine) States() []State { return slices.Clone(m.states) }

// Level is the highest of all resources.
func (m *Machine) Level() Level {
	level := Normal
	for _, s := range m.states {
		level = max(level, s.Level)
	}
	return level
}

// Active returns the names of the actions that are to be taken now, of all resources together, in their order.
func (m *Machine) Active() []string {
	var active []string
	for _, a := range m.actions {
		i := slices.IndexFunc(m.states, func(s State) bool { return s.Resource == a.Resource })
		if i >= 0 && m.states[i].calls(a) {
			active = append(active, a.Name)
		}
	}
	slices.Sort(active)
	return slices.Compact(active)
}

// calls reports whether an action is to be taken at this state of its resource.
func (s *State) calls(a Action) bool {
	if s.Level == Normal || s.Level < a.From {
		return false
	}
	return !a.AfterHistory || s.Level >= High || s.HistoryPolls > 0 && s.Polls > s.HistoryPolls
}
