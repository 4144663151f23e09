package verbs

import (
	"errors"
	"fmt"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/validation"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// validating holds messages of XML against their schema while they are taken out of a body, and gives the valid ones to a sink.
type validating struct {
	*sink
	run      *validation.Run
	recovers bool
	from, to int64 // of the message
	wrong    error // the first thing that is
}

// newValidating says what of the schema is not checked.
func (env environment) newValidating(schema *xsd.Schema, to *sink, recovers bool) (*validating, error) {
	v, err := validation.New(schema)
	if err != nil {
		return nil, err
	}
	for _, f := range v.Unchecked() {
		fmt.Fprintf(env.Stderr, "parley: %v\n", f)
	}
	return &validating{sink: to, run: v.NewRun(), recovers: recovers}, nil
}

// Root implements [envelope.Watcher].
func (v *validating) Root(_ string, from int64) {
	v.run.Reset()
	v.from, v.wrong = from, nil
}

// Token implements [envelope.Watcher].
func (v *validating) Token(s *xmlscan.Scanner, kind xmlscan.Kind) {
	v.to = s.End()
	if v.wrong == nil {
		v.wrong = v.run.Token(s, kind)
	}
}

// End implements [interchange.Sink].
func (v *validating) End(m interchange.Message) error {
	if v.wrong == nil {
		return v.sink.End(m)
	}
	err := v.Abort(m.Number)
	f, is := fault.Of(v.wrong)
	if !is || !v.recovers {
		return errors.Join(v.wrong, err)
	}
	f.Number, f.End = m.Number, v.to
	return errors.Join(err, v.Bad(interchange.Bad{Fault: f, From: v.from, To: v.to}))
}

var _ envelope.Watcher = (*validating)(nil)
