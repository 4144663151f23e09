package adapters

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/schedule"
)

// endpoint is a location or a port in definitions.
type endpoint struct {
	Host     string            `json:"host"`
	Adapter  string            `json:"adapter"`
	Address  string            `json:"address"`
	Settings json.RawMessage   `json:"settings"`
	Secrets  map[string]string `json:"secrets"`
	State    string            `json:"state"`
	Enabled  *bool             `json:"enabled"`
	Schedule json.RawMessage   `json:"schedule"`
	Port     string            `json:"receive_port"`
	Responds bool              `json:"responds"` // of a location as its port says
}

// isIdle reports whether nothing is taken or sent.
func (e endpoint) isIdle() bool {
	return e.State == "Bound" || e.State == "Stopped" || e.Enabled != nil && !*e.Enabled
}

// Check gives what is wrong with the addresses, settings and secrets of locations and ports, without opening anything. Paths of problems
// begin with kind and name.
func (r Registry) Check(definitions json.RawMessage) ([]adapter.Problem, error) {
	var document map[string]json.RawMessage
	if err := json.Unmarshal(definitions, &document); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	problems, ports := []adapter.Problem{}, map[string]endpoint{}
	if written, isThere := document["receive port"]; isThere {
		if err := json.Unmarshal(written, &ports); err != nil {
			return nil, fmt.Errorf("read the definitions: %w", err)
		}
	}
	for _, of := range []struct {
		kind      string
		direction adapter.Direction
	}{{"receive location", adapter.Receive}, {"send port", adapter.Send}} {
		endpoints := map[string]endpoint{}
		if written, isThere := document[of.kind]; isThere {
			if err := json.Unmarshal(written, &endpoints); err != nil {
				return nil, fmt.Errorf("read the definitions: %w", err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(endpoints)) {
			e := endpoints[name]
			if of.direction == adapter.Receive {
				e.Responds = ports[e.Port].Responds
			}
			for _, p := range append(r.check(of.direction, e), checkSchedule(e.Schedule)...) {
				p.Path = append([]string{of.kind, name}, p.Path...)
				problems = append(problems, p)
			}
		}
		if of.direction == adapter.Receive {
			problems = append(problems, r.checkListening(endpoints)...)
		}
	}
	return problems, nil
}

// checkListening gives what two locations of one host would listen at. Hosts may be served on machines of their own.
func (r Registry) checkListening(locations map[string]endpoint) []adapter.Problem {
	listening := map[string]*adapter.Listening{}
	var problems []adapter.Problem
	for _, name := range slices.Sorted(maps.Keys(locations)) {
		location := locations[name]
		kind, known := r.Find(location.Adapter)
		if !known || kind.Listens == nil || location.isIdle() {
			continue
		}
		own := kind.Listens(location.Address)
		if own == nil {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(listening)) {
			if locations[other].Host != location.Host {
				continue
			}
			if taken := own.Conflict(*listening[other]); taken != "" {
				problems = append(problems, adapter.Problem{
					Path: []string{"receive location", name, "address"}, Other: []string{"receive location", other, "address"},
					Message: "it listens at " + taken, Remedy: "Give one of the two another path or port, or disable it.",
				})
				break
			}
		}
		listening[name] = own
	}
	return problems
}

func (r Registry) check(direction adapter.Direction, e endpoint) []adapter.Problem {
	kind, known := r.Find(e.Adapter)
	isMissing := !known || direction == adapter.Receive && kind.NewReceiver == nil || direction == adapter.Send && kind.NewSender == nil
	switch {
	case isMissing && e.isIdle(): // such as one that was carried over from another engine
		return nil
	case isMissing:
		return []adapter.Problem{{
			Path: []string{"adapter"}, Message: fmt.Sprintf("there is no adapter %q to %s by", e.Adapter, direction),
			Remedy: "Name one of " + strings.Join(r.names(direction), ", ") + ".",
		}}
	case e.Responds && !kind.Answers[direction]:
		return []adapter.Problem{{
			Path: []string{"adapter"}, Message: fmt.Sprintf("the adapter %s has no answers to %s", kind.Name, direction),
			Remedy: "Have responds false, of the receive port of a location, or name one of " + strings.Join(r.answering(direction), ", ") + ".",
		}}
	case kind.Check == nil:
		return nil
	}
	return kind.Check(direction, e.Address, e.Settings, slices.Sorted(maps.Keys(e.Secrets)))
}

// checkSchedule gives what is wrong with a schedule.
func checkSchedule(written json.RawMessage) []adapter.Problem {
	_, err := schedule.Read(written)
	var problems []adapter.Problem
	for _, f := range schedule.Faults(err) {
		problems = append(problems, adapter.Problem{Path: append([]string{"schedule"}, f.Path...), Message: f.Message, Remedy: f.Remedy})
	}
	return problems
}

// answering gives the adapters that have answers in a direction.
func (r Registry) answering(direction adapter.Direction) []string {
	found := []string{}
	for _, kind := range r.kinds {
		if kind.Answers[direction] {
			found = append(found, kind.Name)
		}
	}
	return found
}

// names gives the adapters of a direction.
func (r Registry) names(direction adapter.Direction) []string {
	found := []string{}
	for _, kind := range r.kinds {
		if direction == adapter.Receive && kind.NewReceiver != nil || direction == adapter.Send && kind.NewSender != nil {
			found = append(found, kind.Name)
		}
	}
	return found
}
