package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// definitions are the parts of a document {kind: {name: settings}} that concern pipelines.
type definitions struct {
	MessageTypes     json.RawMessage       `json:"message type"`
	PropertySchemas  json.RawMessage       `json:"property schema"`
	Pipelines        map[string]Definition `json:"pipeline"`
	ReceiveLocations map[string]place      `json:"receive location"`
	SendPorts        map[string]place      `json:"send port"`
}

// place is a location or port, as far as it concerns its pipeline.
type place struct {
	Pipeline string          `json:"pipeline"`
	Settings json.RawMessage `json:"pipeline_settings"`
}

// Check gives what is wrong with the pipelines, the message types and the settings of pipelines of a document of definitions, whose shape
// the database has found to be right: {kind: {name: settings}}, with all that it refers to.
func Check(document json.RawMessage) (Problems, error) {
	var d definitions
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	types, err := NewTypes(d.MessageTypes, d.PropertySchemas)
	if err != nil {
		return nil, err
	}
	var found Problems
	add := func(problems Problems) {
		for _, p := range problems {
			if !slices.ContainsFunc(found, func(q Problem) bool { return p.String() == q.String() }) {
				found = append(found, p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types.byName)) {
		add(types.check(name))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Pipelines)) {
		definition := d.Pipelines[name]
		definition.Name = name
		_, problems := compile(definition, definition.Direction, types, nil, []string{"pipeline", name}, nil)
		add(problems)
	}
	add(d.checkPlaces("receive location", directionReceive, "PassThruReceive", d.ReceiveLocations, types))
	add(d.checkPlaces("send port", directionSend, "PassThruTransmit", d.SendPorts, types))
	return found, nil
}

// check gives what is wrong with a message type.
func (t *Types) check(name string) Problems {
	c := t.of(name)
	problems := slices.Clone(Problems(c.problems))
	if c.xsd != nil && c.xsd.IsEnvelope() {
		if _, err := c.envelope(); err != nil {
			problems = append(problems, ProblemOf(err, []string{"message type", name, "schema"}))
		}
	}
	return problems
}

// checkPlaces compiles the pipelines of places that have settings of their own.
func (d *definitions) checkPlaces(kind, direction, byDefault string, places map[string]place, types *Types) Problems {
	var found Problems
	for _, name := range slices.Sorted(maps.Keys(places)) {
		p := places[name]
		if p.Pipeline == "" {
			p.Pipeline = byDefault
		}
		definition, ok := d.Pipelines[p.Pipeline]
		if !ok {
			definition, ok = BuiltIn()[p.Pipeline]
		}
		if !ok {
			continue // the database says so
		}
		definition.Name = p.Pipeline
		at := []string{kind, name, "pipeline_settings"}
		if definition.Direction != direction {
			at = []string{kind, name, "pipeline"}
		}
		_, problems := compile(definition, direction, types, p.Settings, at, at)
		_, own := compile(definition, definition.Direction, types, nil, nil, nil)
		for _, problem := range problems {
			if slices.ContainsFunc(own, func(q Problem) bool { return q.Message == problem.Message }) {
				continue // said of the pipeline itself
			}
			if len(problem.Path) > 3 && problem.Path[3] == "stages" {
				problem.Path = at // a setting of the pipeline, which does not go with those of this place
			}
			found = append(found, problem)
		}
	}
	return found
}
