package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/text"
)

// compiling makes the components of a pipeline and collects what is wrong.
type compiling struct {
	types     *Types
	problems  Problems
	use       []string // the path of the component that is made
	override  []string // the path of its settings in this place
	isOver    map[string]bool
	component Component
	// typeProblems are those of message types that were said already.
	typeProblems []string
}

// part is a component of a stage, made.
type part struct {
	component string
	run       any
}

// compile makes the components of a definition by stage. The paths of problems begin with base, or over for settings of this place.
func compile(
	definition Definition, direction string, types *Types, overrides json.RawMessage, base, over []string,
) (map[string][]part, Problems) {
	c := &compiling{types: types}
	settings, isRead := c.readOverrides(overrides, over)
	if definition.Direction != direction {
		c.add(base, fmt.Sprintf("pipeline %s is one to %s", definition.Name, definition.Direction), "name a pipeline to "+direction)
		return nil, c.problems
	}
	parts := map[string][]part{}
	isUsed := map[string]bool{}
	for _, stage := range slices.Sorted(maps.Keys(definition.Stages)) {
		uses := definition.Stages[stage]
		at := slices.Concat(base, []string{"stages", stage})
		if !slices.Contains(Stages(direction), stage) {
			c.add(at, fmt.Sprintf("a pipeline to %s has no stage %q", direction, stage),
				"its stages are, in their order: "+strings.Join(Stages(direction), ", "))
			continue
		}
		if stage == stageAssemble && len(uses) > 1 {
			c.add(at, "stage assemble has several components", "a message is assembled once: leave one")
		}
		for i, use := range uses {
			isUsed[use.Component] = true
			c.use, c.override = slices.Concat(at, []string{strconv.Itoa(i)}), slices.Concat(over, []string{use.Component})
			if made := c.make(direction, stage, use, settings[use.Component]); made != nil {
				parts[stage] = append(parts[stage], part{use.Component, made})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if isRead && !isUsed[name] {
			remedy := "it has no components, and so no settings"
			if len(isUsed) > 0 {
				remedy = "its components are: " + strings.Join(slices.Sorted(maps.Keys(isUsed)), ", ")
			}
			c.add(slices.Concat(over, []string{name}), fmt.Sprintf("pipeline %s has no component %q", definition.Name, name), remedy)
		}
	}
	return parts, c.problems
}

func (c *compiling) readOverrides(overrides json.RawMessage, over []string) (settings map[string]json.RawMessage, isRead bool) {
	if len(overrides) == 0 {
		return nil, true
	}
	if err := json.Unmarshal(overrides, &settings); err != nil {
		c.add(over, "the settings are no object of components", `give {"component": {"setting": value}}`)
		return nil, false
	}
	return settings, true
}

func (c *compiling) add(path []string, message, remedy string) {
	c.problems = append(c.problems, Problem{Path: path, Message: message, Remedy: remedy})
}

// fail says what is wrong with a setting of the component that is made; an empty setting stands for all of it.
func (c *compiling) fail(setting string, err error) {
	path := slices.Concat(c.use, []string{"settings", setting})
	switch {
	case c.isOver[setting]:
		path = slices.Concat(c.override, []string{setting})
	case setting == "":
		path = c.use
	}
	c.problems = append(c.problems, ProblemOf(err, path))
}

// make makes a component with its defaults, its settings and those of this place, the last one first.
func (c *compiling) make(direction, stage string, use Use, here json.RawMessage) any {
	component, ok := registry[use.Component]
	if !ok {
		c.add(append(c.use, "component"), fmt.Sprintf("there is no component %q", use.Component),
			"those of the stage are: "+strings.Join(namesOf(direction, stage), ", "))
		return nil
	}
	if !component.isFor(direction, stage) {
		c.add(append(c.use, "component"), fmt.Sprintf("component %s cannot stand in stage %s", component.Name, stage),
			"it is one of stage "+strings.Join(component.Stages, ", "))
		return nil
	}
	c.component, c.isOver = component, map[string]bool{}
	before := len(c.problems)
	settings := map[string]json.RawMessage{}
	for _, s := range component.Settings {
		settings[s.Name] = s.Default
	}
	c.take(settings, use.Settings, append(slices.Clone(c.use), "settings"), false)
	c.take(settings, here, c.override, true)
	if len(c.problems) > before {
		return nil
	}
	merged, err := json.Marshal(settings)
	if err != nil {
		c.fail("", err)
		return nil
	}
	made := component.make(c, merged)
	if len(c.problems) > before {
		return nil
	}
	return made
}

// isFor reports whether the component may stand in a stage of pipelines of a direction.
func (c Component) isFor(direction, stage string) bool {
	return (c.Direction == direction || c.Direction == directionBoth) && slices.Contains(c.Stages, stage)
}

func namesOf(direction, stage string) []string {
	var names []string
	for _, c := range Components() {
		if c.isFor(direction, stage) {
			names = append(names, c.Name)
		}
	}
	if names == nil {
		return []string{"none"}
	}
	return names
}

// take adds settings that are given to those that there are.
func (c *compiling) take(settings map[string]json.RawMessage, given json.RawMessage, path []string, isOver bool) {
	if len(given) == 0 || string(given) == "null" {
		return
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(given, &object); err != nil {
		c.add(path, "the settings are no object", `give {"setting": value}`)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := append(slices.Clone(path), name)
		i := slices.IndexFunc(c.component.Settings, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			c.add(at, fmt.Sprintf("component %s has no setting %q", c.component.Name, name), c.known())
			continue
		}
		if string(object[name]) == "null" {
			settings[name] = c.component.Settings[i].Default
			continue
		}
		if wrong := c.component.Settings[i].wrong(object[name]); wrong != "" {
			c.add(at, fmt.Sprintf("setting %s is %s", name, shortened(object[name])), "give "+wrong)
			continue
		}
		settings[name] = object[name]
		if isOver {
			c.isOver[name] = true
		}
	}
}

func shortened(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil || b.Len() > 60 {
		return "a value of another kind"
	}
	return b.String()
}

func (c *compiling) known() string {
	if len(c.component.Settings) == 0 {
		return "it has none: leave the setting out"
	}
	names := make([]string, len(c.component.Settings))
	for i, s := range c.component.Settings {
		names[i] = s.Name
	}
	return "its settings are: " + strings.Join(names, ", ")
}

// wrong says what to give where a value is none of the setting.
func (s Setting) wrong(value json.RawMessage) string {
	fits := func(into any) bool { return json.Unmarshal(value, into) == nil }
	var written string
	switch s.Type {
	case Boolean:
		if !fits(new(bool)) {
			return "true or false"
		}
	case Integer:
		var n int64
		if !fits(&n) || n < 1 || n > 1<<40 {
			return "a number from 1 on"
		}
	case Texts, MessageTypes:
		if !fits(new([]string)) {
			return "a list of texts"
		}
	case Choice:
		if !fits(&written) || !slices.Contains(s.Choices, written) {
			return "one of " + strings.Join(s.Choices, ", ")
		}
	case Character:
		if !fits(&written) || utf8.RuneCountInString(written) != 1 {
			return "one character"
		}
	case CharsetName:
		if !fits(&written) {
			return "the name of a charset"
		}
		if _, err := text.Lookup(written); err != nil {
			return "a charset of the Internet's registry or the number of a code page, such as windows-1252"
		}
	case Text, MessageType:
		if !fits(&written) || written == "" {
			return "a text"
		}
	}
	return ""
}

// decode reads the settings of a component into a struct.
func decode[S any](c *compiling, settings json.RawMessage) S {
	var s S
	if err := json.Unmarshal(settings, &s); err != nil {
		c.fail("", err)
	}
	return s
}
