package pipeline

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// MapProperty names the map that has made a message.
const MapProperty = Space + "#Map"

// Retype gives a message that a map has made another type, and the properties that its body has by it. Those that the body of the old type
// had are gone; those of adapters and pipelines stay. The body is in UTF-8.
func (t *Types) Retype(m *Message, kind, mapName string, body io.Reader) error {
	m.Promoted, m.Written = maps.Clone(m.Promoted), maps.Clone(m.Written)
	if old := t.of(m.Type); old != nil {
		for _, d := range old.destinations {
			delete(m.Promoted, d.name)
			delete(m.Written, d.name)
		}
	}
	m.Type = kind
	m.Written = with(m.Written, MapProperty, mapName)
	c := t.of(kind)
	if c != nil && len(c.problems) > 0 {
		return Problems(c.problems)
	}
	if c != nil && c.isJSON {
		m.ContentType = jsonType // a stylesheet writes JSON as text
	}
	isJSON := strings.HasSuffix(m.ContentType, "json")
	if kind == "" || isJSON && c == nil || !isJSON && m.ContentType != xmlType {
		return nil
	}
	values, err := c.valuesOf(kind, isJSON, body)
	if err != nil {
		return err
	}
	r := &running{}
	r.properties(&message{typed: c, values: values}, m)
	return nil
}

// valuesOf finds the values of a message. It has to be in the form of its type, and one of XML has to have the root that its type says.
func (c *compiledType) valuesOf(kind string, isJSON bool, body io.Reader) ([]typing.Value, error) {
	if isJSON && !c.isJSON {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("the map has made JSON, and messages of its target %s are not", kind),
			Remedy:  "set format: json of the message type, or correct the target of the map",
		}
	}
	if isJSON {
		values, err := c.json.read(body)
		if err != nil {
			return nil, &fault.Fault{
				Message: fmt.Sprintf("the map has made no JSON, as messages of its target %s are: %v", kind, err), Err: err,
				Remedy: "correct the map, or its target; a stylesheet writes JSON with <xsl:output method=\"text\"/>",
			}
		}
		return values, nil
	}
	var p *typing.Promoter
	if c != nil {
		p = c.xml
	}
	if p == nil {
		p = typing.NewPromoter(nil)
	}
	result, err := p.NewRun().Read(xmlscan.New(body, xmlscan.Limits{Depth: retypedDepth}))
	if err != nil {
		return nil, fmt.Errorf("read what the map has made: %w", err)
	}
	if result.Type != kind {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("the map has made a message of type %s, and its target is %s", result.Type, kind),
			Remedy:  "correct the map, or its target",
		}
	}
	return result.Values, nil
}

// retypedDepth is how deep elements may be in what a map has made.
const retypedDepth = 4096

// StageBehind gives the stage from which on a message is run again that a map behind the pipeline has refused.
func (r *Receive) StageBehind() string {
	if len(r.disassemblers) == 0 {
		return stageDisassemble
	}
	return stageValidate
}
