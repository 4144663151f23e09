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

	"github.com/parley-broker/parley/internal/flow/fault"
)

// A Problem is something wrong with definitions. Path leads to it from the root of the document, kind and name first.
type Problem struct {
	Path  []string
	Fault *fault.Fault
}

const (
	kindMap         = "map"
	settingProgram  = "program"
	settingFunction = "function"
	settingMaps     = "maps"
	settingResponse = "response_maps"
)

// port is a port as far as it concerns maps.
type port struct {
	Maps         []string `json:"maps"`
	ResponseMaps []string `json:"response_maps"`
}

// Check gives what is wrong with the maps of a document of definitions, whose shape the database has found to be right, and with ports that
// use them. A pool compiles them; without one they are read alone.
func Check(ctx context.Context, document json.RawMessage, pool *Pool) ([]Problem, error) {
	var d struct {
		Maps         json.RawMessage `json:"map"`
		MessageTypes map[string]*struct {
			Format string `json:"format"`
		} `json:"message type"`
		ReceivePorts map[string]*port `json:"receive port"`
		SendPorts    map[string]*port `json:"send port"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	all, err := New(d.Maps, pool)
	if err != nil {
		return nil, err
	}
	var found []Problem
	formats := map[string]string{}
	for name, t := range d.MessageTypes {
		formats[name] = "xml"
		if t != nil && t.Format != "" {
			formats[name] = t.Format
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all.byName)) {
		found = append(found, all.byName[name].formProblems(name, formats)...)
		setting, err := all.check(ctx, name)
		if err == nil {
			continue
		}
		f, is := fault.Of(err)
		if !is {
			if !errors.Is(err, ErrNoXSLT) {
				return nil, err
			}
			f = noXSLT(err)
		}
		found = append(found, Problem{[]string{kindMap, name, setting}, f})
	}
	for _, kind := range []struct {
		name  string
		ports map[string]*port
	}{{"receive port", d.ReceivePorts}, {"send port", d.SendPorts}} {
		for _, name := range slices.Sorted(maps.Keys(kind.ports)) {
			p := kind.ports[name]
			if p == nil {
				continue
			}
			if _, f := all.BySource(p.Maps); f != nil {
				found = append(found, Problem{[]string{kind.name, name, settingMaps}, f})
			}
			if _, f := all.BySource(p.ResponseMaps); f != nil {
				found = append(found, Problem{[]string{kind.name, name, settingResponse}, f})
			}
		}
	}
	return found, nil
}

// formProblems gives the types of a map whose messages are in a form that its language does not take or make.
func (d *Definition) formProblems(name string, formats map[string]string) (found []Problem) {
	refuse := func(setting, messageType, verb, form string) {
		if format := formats[messageType]; format != "" && format != form {
			found = append(found, Problem{[]string{kindMap, name, setting}, &fault.Fault{
				Message: fmt.Sprintf("a map in %s %s %s, and messages of type %s are of format %s", d.Language, verb, form, messageType, format),
				Remedy:  fmt.Sprintf("set format: %s of the message type, or name another one", form),
			}})
		}
	}
	switch d.Language {
	case XSLT:
		refuse("source", d.Source, "takes", "xml")
	case JQ:
		refuse("source", d.Source, "takes", "json")
		refuse("target", d.Target, "makes", "json")
	}
	return found
}

// noXSLT is the fault of a machine without a program for stylesheets.
func noXSLT(err error) *fault.Fault {
	return &fault.Fault{
		Message: err.Error(), Err: err,
		Remedy: "install the package parley with libxslt1.1, or build the worker by parley flow map-worker install; " +
			"--unchecked-maps applies maps for nodes that have one",
	}
}

// BySource gives the maps of a port by the types of the messages that they take. Names that there are not are passed over.
func (m *Maps) BySource(names []string) (map[string]string, *fault.Fault) {
	bySource := map[string]string{}
	for _, name := range names {
		d := m.byName[name]
		if d == nil {
			continue
		}
		if d.Source == "" {
			return nil, &fault.Fault{
				Message: fmt.Sprintf("map %q has no source, by which a port finds it", name), Remedy: "set source of the map to a message type",
			}
		}
		if other, isTwice := bySource[d.Source]; isTwice {
			return nil, &fault.Fault{
				Message: fmt.Sprintf("maps %q and %q are both for messages of type %s", other, name, d.Source), Remedy: "leave one of them out",
			}
		}
		bySource[d.Source] = name
	}
	return bySource, nil
}

// check says what is wrong with a map, and in which setting.
func (m *Maps) check(ctx context.Context, name string) (setting string, err error) {
	d := m.byName[name]
	if d.Language == SQL {
		switch {
		case d.Program.File != "":
			return settingProgram, &fault.Fault{Message: "a map in sql has no program", Remedy: "name its function"}
		case !qualified.MatchString(d.Function):
			return settingFunction, faultOfFunction(d.Function)
		}
		return "", nil
	}
	if d.Function != "" {
		return settingFunction, &fault.Fault{
			Message: fmt.Sprintf("a map in %s has no function", d.Language), Remedy: "give its program, or make it a map in sql",
		}
	}
	p, err := m.program(name, d)
	if err == nil && m.pool != nil {
		err = m.pool.check(ctx, d, p)
	}
	return settingProgram, err
}

// Prepare says why a map cannot run here.
func (m *Maps) Prepare(ctx context.Context, name string) error {
	if m.byName[name] == nil {
		return fmt.Errorf("there is no map %q", name)
	}
	if _, err := m.check(ctx, name); err != nil {
		if errors.Is(err, ErrNoXSLT) {
			err = fmt.Errorf("%w: %s", err, noXSLT(err).Remedy)
		}
		return inMap(name, err)
	}
	return nil
}

// check compiles a program as workers do.
func (p *Pool) check(ctx context.Context, d *Definition, made *program) error {
	if d.Language == JQ {
		return nil // it is compiled here as there
	}
	c, err := p.crewOf(d.Language)
	if err != nil {
		return err
	}
	l := d.limits(0)
	if isXsltproc(c.command[0]) {
		empty := &Body{memory: []byte("<parley/>"), size: 9}
		a, err := c.xsltproc(ctx, made, l, []*Body{empty}, io.Discard)
		if err == nil && a.status == statusMap && strings.HasPrefix(a.fields, made.files[0].name+"\x00") && isOfCompilation(a.fields) {
			return made.faultOf(a, l)
		}
		return err
	}
	a, err := c.small.compile(ctx, made, l)
	dead, hasDied := errors.AsType[*died](err)
	switch {
	case hasDied:
		return made.faultOfDeath(dead, l)
	case err != nil:
		return err
	case a.status != statusDone:
		return made.faultOf(a, l)
	}
	return nil
}

// isOfCompilation says that xsltproc has refused the stylesheet, and not the document.
func isOfCompilation(fields string) bool {
	return strings.Contains(fields, "compil") || strings.Contains(fields, "parser error")
}

// compile compiles a program in a worker.
func (l *lane) compile(ctx context.Context, p *program, lim limits) (answer, error) {
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	w, err := l.take(false)
	if err != nil {
		return answer{}, err
	}
	stop := context.AfterFunc(ctx, w.kill)
	a, err := w.compile(p, lim)
	stop()
	if err == nil {
		l.giveBack(w)
		return a, nil
	}
	w.kill()
	_ = w.command.Wait() // the state says how it has ended
	if ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	return a, &died{w.command.ProcessState, err}
}
