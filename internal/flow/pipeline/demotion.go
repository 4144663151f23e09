package pipeline

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// Demotion is the way back of promotion: an assembler writes properties of a message into its body, its envelope, its header or trailer, at
// the paths by which the message type of that document promotes them. An element or attribute that has a value keeps it.

const demoteMeaning = "Whether properties of the message are written into elements and attributes that promote them and are empty."

// values gives the values of properties for the paths of a message type, empty where the message has none; nil where it has none at all.
func (c *compiledType) values(source Source) []string {
	if c == nil || c.xml == nil {
		return nil
	}
	var values []string
	for i, d := range c.destinations {
		if strings.HasPrefix(d.name, distinguished+"#") {
			continue
		}
		value, isThere := source.Promoted[d.name]
		if !isThere {
			value = source.Written[d.name]
		}
		if written := c.written(d, value); written != "" {
			if values == nil {
				values = make([]string, len(c.destinations))
			}
			values[i] = written
		}
	}
	return values
}

// filling writes properties of a message into a document of the type; nil where there is nothing to write.
func (c *compiledType) filling(source Source) (*typing.Filling, error) {
	values := c.values(source)
	if values == nil {
		return nil, nil //nolint:nilnil // there is none, and nothing wrong
	}
	return c.xml.NewFilling(values)
}

// fields gives properties of a message with the places that they have in a document of the type.
func (c *compiledType) fields(source Source) []typing.Field {
	var fields []typing.Field
	for i, value := range c.values(source) {
		if value != "" {
			fields = append(fields, typing.Field{Path: c.destinations[i].path, Value: value})
		}
	}
	return fields
}

// written gives a value of a property as it is written at the place of the destination.
func (c *compiledType) written(d destination, value any) string {
	var plain string
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		plain = v
	case float64:
		plain = strconv.FormatFloat(v, 'f', -1, 64)
	case json.Number:
		plain = v.String()
	default:
		plain = fmt.Sprint(v)
	}
	if simple := simpleAt(c.root, d.path); simple != nil {
		if layout, isPart := partsOfTimes[simple.Base]; isPart {
			if at, err := time.Parse(time.RFC3339Nano, plain); err == nil {
				return at.UTC().Format(layout)
			}
		}
	}
	return plain
}

// partsOfTimes are the forms in which a time is written where the schema asks for a part of it.
var partsOfTimes = map[string]string{
	"date": "2006-01-02Z", "time": "15:04:05.0000000Z", "gYear": "2006Z", "gYearMonth": "2006-01Z", "gMonth": "--01Z",
	"gMonthDay": "--01-02Z", "gDay": "---02Z",
}

// simpleAt gives the type of the value at a path, nil where the schema does not say it.
func simpleAt(in *xsd.Element, path *typing.Path) *xsd.SimpleType {
	for i, step := range path.Steps {
		switch {
		case in == nil:
			return nil
		case i == 0:
		case path.IsAttribute && i == len(path.Steps)-1:
			for _, a := range in.Attributes {
				if a.Name == step {
					return a.Simple
				}
			}
			return nil
		default:
			in = childOf(in, step.Local)
		}
	}
	if in == nil {
		return nil
	}
	return in.Simple
}

// demoted gives a document of XML with properties of the message written into it, in UTF-8. done ends what works on it.
func demoted(body io.Reader, charset string, filling *typing.Filling) (document io.Reader, done func()) {
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wrapper, err := envelope.NewWrapper(to, nil, text.Output{})
		if err == nil {
			err = wrapper.Add(body, charset, filling)
		}
		if err == nil {
			err = wrapper.Close()
		}
		_ = to.CloseWithError(err) // a pipe has no error of its own
	}()
	return from, func() {
		_ = from.CloseWithError(io.ErrClosedPipe) // a pipe has no error of its own
		<-ended
	}
}

// aside gives the document of a header or trailer: as it was given, or made of what its schema says and the properties that it promotes.
func (a *flatAssembler) aside(of asideOf, given string, m outgoing) (io.Reader, error) {
	if of.schema == nil {
		return nil, nil //nolint:nilnil // there is none, and nothing wrong
	}
	t := m.types.of(of.name)
	if given == "" {
		var fields []typing.Field
		if a.demotes {
			fields = t.fields(m.source)
		}
		if document, _, _, hasValue := typing.Instance(t.root, fields, nil); hasValue {
			return strings.NewReader(document), nil
		}
		return nil, &fault.Fault{
			Message: fmt.Sprintf("the %s has no value: the message has no property that %s promotes%s", of.what, of.name, of.orProperty),
			Remedy:  of.remedy,
		}
	}
	if !a.demotes {
		return strings.NewReader(given), nil
	}
	filling, err := t.filling(m.source)
	if filling == nil || err != nil {
		return strings.NewReader(given), err
	}
	var made strings.Builder
	wrapper, err := envelope.NewWrapper(&made, nil, text.Output{})
	if err != nil {
		return nil, err
	}
	if err := wrapper.Add(strings.NewReader(given), "", filling); err != nil {
		return nil, err
	}
	return strings.NewReader(made.String()), wrapper.Close()
}
