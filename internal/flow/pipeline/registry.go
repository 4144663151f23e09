package pipeline

import "encoding/json"

// Component is a component of pipelines, as definitions and documents know it.
type Component struct {
	Name      string    `json:"name"`
	Direction string    `json:"direction"` // receive or send
	Stages    []string  `json:"stages"`    // in which it may stand
	Meaning   string    `json:"meaning"`
	Settings  []Setting `json:"settings"`
}

// Setting is a setting of a component.
type Setting struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`    // boolean, integer, text, list, object; message type, message types; or the choices, joined by |
	Default json.RawMessage `json:"default"` // nil: none
	Meaning string          `json:"meaning"`
}

// Problem is something wrong with definitions. Path leads to it from the root of the document, kind and name first. File, Line and Column
// are set where it is a schema that is wrong.
type Problem struct {
	Path         []string
	Message      string
	Remedy       string
	File         string
	Line, Column int
}

// Components gives the components that there are, in the order of their names.
func Components() []Component { return nil }
