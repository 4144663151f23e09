package mapping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Maps are the maps that definitions have. They can be used by any number of messages at the same time.
type Maps struct {
	pool     *Pool
	byName   map[string]*Definition
	mu       *sync.Mutex
	compiled map[string]compiled
	place    *Place
}

// compiled is a program, or why there is none.
type compiled struct {
	program *program
	err     error
}

// New takes maps, an object of names and settings, as definitions and the configuration of a host have them; nil: none.
func New(definitions json.RawMessage, pool *Pool) (*Maps, error) {
	all, err := readDefinitions(definitions)
	if err != nil {
		return nil, err
	}
	return &Maps{pool: pool, byName: all, mu: &sync.Mutex{}, compiled: map[string]compiled{}}, nil
}

// In gives the same maps, of which those in SQL are called in a transaction.
func (m *Maps) In(place Place) *Maps {
	in := *m
	in.place = &place
	return &in
}

// Definition gives a map; nil where there is none of the name.
func (m *Maps) Definition(name string) *Definition { return m.byName[name] }

// IsSQL reports whether a map has to be run in a transaction, with [Maps.In].
func (m *Maps) IsSQL(name string) bool {
	d := m.byName[name]
	return d != nil && d.Language == SQL
}

// program gives a map, compiled as far as it is here.
func (m *Maps) program(name string, d *Definition) (*program, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, isThere := m.compiled[name]; isThere {
		return c.program, c.err
	}
	var c compiled
	switch d.Language {
	case XSLT:
		c.program, c.err = compileStylesheet(&d.Program)
	case JQ:
		c.program, c.err = compileJQ(&d.Program)
	default:
		c.err = &fault.Fault{Message: fmt.Sprintf("the map has no language %q", d.Language), Remedy: "name one of xslt, jq, sql"}
	}
	m.compiled[name] = c
	return c.program, c.err
}

// inputsMost bounds the messages that a map takes at once.
const inputsMost = 64

// Run transforms inputs by a map. Several inputs become one document: of XML, Root in the namespace of BizTalk's aggregates with
// InputMessagePart_0 and on; of JSON an array. An error that has a [fault.Fault] in it is one of the message or the map, and trying again
// does not help; the fault has the line of the map and the node of the input. Any other error says that it could not be tried.
func (m *Maps) Run(ctx context.Context, name string, inputs []Input) (Output, error) {
	d := m.byName[name]
	switch {
	case d == nil:
		return Output{}, &fault.Fault{Message: fmt.Sprintf("there is no map %q", name), Remedy: "define it, or name one of " + m.someNames()}
	case len(inputs) == 0 || len(inputs) > inputsMost:
		return Output{}, fmt.Errorf("map %q got %d inputs, and takes 1 to %d", name, len(inputs), inputsMost)
	case d.Language == SQL:
		return m.runSQL(ctx, name, d, inputs)
	}
	p, err := m.program(name, d)
	if err != nil {
		return Output{}, inMap(name, err)
	}
	bodies := make([]*Body, 0, len(inputs))
	defer func() {
		for _, b := range bodies {
			_ = b.Close() // It was read to its end.
		}
	}()
	size, isUTF8 := int64(0), true
	for _, in := range inputs {
		b, err := in.gather(ctx)
		if err != nil {
			return Output{}, err
		}
		bodies = append(bodies, b)
		size += b.size
		isUTF8 = isUTF8 && strings.EqualFold(in.Charset, "utf-8")
	}
	out, err := m.pool.transform(ctx, d, p, d.limits(size), isUTF8, bodies)
	return out, inMap(name, err)
}

// inMap says of which map a fault is.
func inMap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("map %s: %w", name, err)
}

func (m *Maps) someNames() string {
	names := slices.Sorted(maps.Keys(m.byName))
	if len(names) == 0 {
		return "none: there are no maps"
	}
	if len(names) > 10 {
		names = append(names[:10], "...")
	}
	return strings.Join(names, ", ")
}

// transform runs a program in a process.
func (p *Pool) transform(ctx context.Context, d *Definition, made *program, l limits, isUTF8 bool, inputs []*Body) (Output, error) {
	var a answer
	var err error
	result := &Body{}
	fresh := func() io.Writer {
		_ = result.Close() // of a run that is begun anew
		result = &Body{}
		return result
	}
	c, err := p.crewOf(d.Language)
	if err != nil {
		return Output{}, err
	}
	if d.Language == XSLT && isXsltproc(c.command[0]) {
		a, err = c.xsltproc(ctx, made, l, inputs, fresh())
	} else {
		lane := c.small
		if slices.ContainsFunc(inputs, (*Body).isLarge) {
			lane = c.large
		}
		a, err = lane.run(ctx, made, l, isUTF8, inputs, fresh)
	}
	if err == nil && a.status == statusDone {
		method, media, _ := strings.Cut(a.fields, "\x00")
		return Output{Body: result, Type: d.Target, ContentType: contentType(method, media), Charset: "utf-8"}, nil
	}
	_ = result.Close() // what there is of it is of no use
	dead, hasDied := errors.AsType[*died](err)
	switch {
	case hasDied:
		return Output{}, made.faultOfDeath(dead, l)
	case errors.Is(err, errStill):
		return Output{}, &fault.Fault{
			File: made.files[0].name, Message: fmt.Sprintf("the map was not seen to get on for %.0f seconds", l.still().Seconds()), Err: err,
			Remedy: "raise timeout_s of the map, or see whether the machine has too little memory",
		}
	case err != nil:
		return Output{}, err
	}
	return Output{}, made.faultOf(a, l)
}

// contentType gives the media type of an output.
func contentType(method, media string) string {
	switch {
	case media != "":
		return media
	case method == "text":
		return "text/plain"
	case method == "html":
		return "text/html"
	case method == "json":
		return "application/json"
	}
	return "application/xml"
}
