package verbs

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
)

// byKind are definitions, {kind: {name: settings}}.
type byKind map[string]map[string]json.RawMessage

// withActivations gives definitions to apply with the receives by which their orchestrations begin: the database routes by these. before
// are those that there are. An orchestration that is wrong has none: what is wrong is found when all are checked.
func withActivations(before, written json.RawMessage) (json.RawMessage, error) {
	given, all := byKind{}, byKind{}
	if err := json.Unmarshal(written, &given); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	if len(given["orchestration"]) == 0 {
		return written, nil
	}
	if err := json.Unmarshal(before, &all); err != nil {
		return nil, fmt.Errorf("read the definitions that there are: %w", err)
	}
	for kind, of := range given {
		if all[kind] == nil {
			all[kind] = map[string]json.RawMessage{}
		}
		maps.Copy(all[kind], of)
	}
	known, err := knownOf(all)
	if err != nil {
		return nil, err
	}
	for name, settings := range given["orchestration"] {
		program, problems := orchestrator.Check(name, settings, known)
		if len(problems) > 0 {
			continue
		}
		if given["orchestration"][name], err = withSetting(settings, "activations", activationsOf(program)); err != nil {
			return nil, err
		}
	}
	return json.Marshal(given)
}

func knownOf(all byKind) (process.Known, error) {
	document, err := json.Marshal(all)
	if err != nil {
		return process.Known{}, fmt.Errorf("write the definitions: %w", err)
	}
	return process.KnownOf(document)
}

// activation is a receive that begins instances, as the database takes it.
type activation struct {
	Receive string   `json:"receive"`
	Filter  any      `json:"filter"`
	Convoy  []string `json:"convoy"`
}

func activationsOf(program *process.Program) []activation {
	activations := []activation{}
	for _, a := range program.Activations() {
		groups := [][]map[string]any{}
		for _, group := range a.Filter {
			predicates := []map[string]any{}
			for _, p := range group {
				predicate := map[string]any{"property": p.Property, "operator": p.Operator}
				switch p.Operator {
				case "exists":
				case "in":
					predicate["value"] = p.Values
				default:
					predicate["value"] = p.Value
				}
				predicates = append(predicates, predicate)
			}
			groups = append(groups, predicates)
		}
		activations = append(activations, activation{a.Receive, groups, append([]string{}, a.Convoy...)})
	}
	return activations
}

// withSetting gives settings with one more.
func withSetting(settings json.RawMessage, name string, value any) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(settings, &all); err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	written, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write setting %s: %w", name, err)
	}
	all[name] = written
	return json.Marshal(all)
}
