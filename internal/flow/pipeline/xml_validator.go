package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/validation"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// xmlValidator holds messages against the XML schemas of their types.
type xmlValidator struct {
	documents                                    []string
	isRecovered, requiresSchema, allowsUnchecked bool
}

func makeXMLValidator(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Documents      []string `json:"documents"`
		RequireSchema  bool     `json:"require_schema"`
		AllowUnchecked bool     `json:"allow_unchecked"`
		Recoverable    bool     `json:"recoverable"`
	}](c, settings)
	v := &xmlValidator{
		documents: s.Documents, isRecovered: s.Recoverable, requiresSchema: s.RequireSchema, allowsUnchecked: s.AllowUnchecked,
	}
	for _, name := range s.Documents {
		if c.withXSD("documents", name) == nil {
			continue
		}
		if _, err := v.of(name, c.types.of(name)); err != nil {
			c.fail("documents", err)
		}
	}
	return v
}

func (v *xmlValidator) recovers() bool { return v.isRecovered }

// of gives who holds a message of a type against its schema; nil where nobody has to.
func (v *xmlValidator) of(kind string, typed *compiledType) (*validation.Validator, error) {
	if len(v.documents) > 0 && !slices.Contains(v.documents, kind) {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("message type %s is not valid here", kind), Remedy: "add it to documents, or send a message of one of these",
		}
	}
	found, err := typed.validation()
	switch {
	case err != nil:
	case found == nil && v.requiresSchema:
		err = withoutSchema(kind, "XML schema")
	case found != nil && !v.allowsUnchecked && len(found.Unchecked()) > 0:
		first := found.Unchecked()[0]
		err = &fault.Fault{
			Message: fmt.Sprintf("the schema of message type %s asks for more: %s", kind, first.Message), File: first.File, Place: first.Place,
			Remedy: "set allow_unchecked: true, and check it in the program that gets the message",
		}
	}
	return found, err
}

// reading implements [validator].
func (v *xmlValidator) reading(kind string, typed *compiledType) func(io.Reader) error {
	return func(body io.Reader) error {
		found, err := v.of(kind, typed)
		if err != nil || found == nil {
			return err
		}
		return found.Check(body, "")
	}
}

// result implements [transformer].
func (v *xmlValidator) result(in Result, _ Source) Result { return in }

// transform implements [transformer].
func (v *xmlValidator) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	found, err := v.of(m.source.Type, m.types.of(m.source.Type))
	if err != nil {
		return err
	}
	seen := io.TeeReader(body, w)
	if found != nil {
		if err := found.Check(seen, m.Charset); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, seen) // where nothing was read
	return err
}

// following is a validator that follows the tokens of messages which somebody reads.
type following struct {
	component string
	recovers  bool
	of        func(kind string, typed *compiledType) (*validation.Validator, error)
	run       *validation.Run
	runOf     *validation.Validator
	err       error // of the message that is read
}

// xmlValidators are those of the pipeline and, where the disassembler validates, its own.
func (r *running) xmlValidators(validates bool) []*following {
	var all []*following
	if validates {
		own := &xmlValidator{requiresSchema: true, allowsUnchecked: true}
		all = append(all, &following{component: r.component, recovers: r.recovers, of: own.of})
	}
	for _, p := range r.pipe.validators {
		if v, is := p.run.(*xmlValidator); is {
			all = append(all, &following{component: p.component, recovers: v.isRecovered, of: v.of})
		}
	}
	return all
}

func (f *following) begin(kind string, types *Types) {
	var found *validation.Validator
	found, f.err = f.of(kind, types.of(kind))
	switch {
	case f.err != nil || found == nil:
		f.run, f.runOf = nil, nil
	case found == f.runOf:
		f.run.Reset()
	default:
		f.run, f.runOf = found.NewRun(), found
	}
}

func (f *following) token(s *xmlscan.Scanner, kind xmlscan.Kind) {
	if f.run != nil && f.err == nil {
		f.err = f.run.Token(s, kind)
	}
}
