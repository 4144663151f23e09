package pipeline

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Component is a component of pipelines, as definitions and documents know it.
type Component struct {
	Name      string    `json:"name"`
	Direction string    `json:"direction"` // receive, send or both
	Stages    []string  `json:"stages"`    // in which it may stand
	Meaning   string    `json:"meaning"`
	Settings  []Setting `json:"settings"`
	// make makes what runs of settings that have all their values. It returns nil where it has found problems.
	make func(c *compiling, settings json.RawMessage) any
}

// Setting is a setting of a component.
type Setting struct {
	Name    string          `json:"name"`
	Type    Type            `json:"type"`
	Choices []string        `json:"choices,omitempty"`
	Default json.RawMessage `json:"default"` // null: none
	Meaning string          `json:"meaning"`
}

// Type is the type of a setting.
type Type string

// The types of settings.
const (
	Boolean      Type = "boolean"
	Integer      Type = "integer" // from 1
	Text         Type = "text"
	Texts        Type = "texts"
	Choice       Type = "choice"
	Character    Type = "character"
	CharsetName  Type = "charset"
	MessageType  Type = "message type"
	MessageTypes Type = "message types"
)

// Directions of pipelines, and their stages in the order in which they run.
const (
	directionReceive = "receive"
	directionSend    = "send"
	directionBoth    = "both" // of components alone

	stageDecode       = "decode"
	stageDisassemble  = "disassemble"
	stageValidate     = "validate"
	stageResolveParty = "resolve_party"
	stagePreAssemble  = "pre_assemble"
	stageAssemble     = "assemble"
	stageEncode       = "encode"
)

// Stages gives the stages of pipelines of a direction, in their order.
func Stages(direction string) []string {
	if direction == directionSend {
		return []string{stagePreAssemble, stageAssemble, stageEncode}
	}
	return []string{stageDecode, stageDisassemble, stageValidate, stageResolveParty}
}

// Components gives the components that there are, in the order of their names.
func Components() []Component {
	all := slices.Concat(disassemblers(), validators(), assemblers(), encodings(), archives(), entities())
	slices.SortFunc(all, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

var registry = func() map[string]Component {
	named := map[string]Component{}
	for _, c := range Components() {
		named[c.Name] = c
	}
	return named
}()

func setting(name string, kind Type, byDefault, meaning string, choices ...string) Setting {
	return Setting{Name: name, Type: kind, Choices: choices, Default: json.RawMessage(byDefault), Meaning: meaning}
}

// BuiltIn are the pipelines that need no definition, as the database has them.
func BuiltIn() map[string]Definition {
	of := func(name, direction, stage, component string) Definition {
		d := Definition{Name: name, Direction: direction, Stages: map[string][]Use{}}
		if stage != "" {
			d.Stages[stage] = []Use{{Component: component}}
		}
		return d
	}
	return map[string]Definition{
		"PassThruReceive":  of("PassThruReceive", directionReceive, "", ""),
		"XMLReceive":       of("XMLReceive", directionReceive, stageDisassemble, "xml-disassembler"),
		"JSONReceive":      of("JSONReceive", directionReceive, stageDisassemble, "json-disassembler"),
		"PassThruTransmit": of("PassThruTransmit", directionSend, "", ""),
		"XMLTransmit":      of("XMLTransmit", directionSend, stageAssemble, "xml-assembler"),
		"JSONTransmit":     of("JSONTransmit", directionSend, stageAssemble, "json-assembler"),
	}
}
