package verbs

import (
	"context"
	"errors"
	"io"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// piped gives the envelopes of a flat file, one behind the other, to the one who takes them apart.
type piped struct{ w *io.PipeWriter }

func (p piped) Begin(number int64) (io.Writer, error) {
	if number > 1 {
		return nil, &fault.Fault{Message: "a second envelope in the file", Number: number, Remedy: "send one envelope in a file"}
	}
	return p.w, nil
}

func (p piped) End(interchange.Message) error { return nil }

func (p piped) Abort(int64) error { return nil }

func (p piped) Bad(bad interchange.Bad) error { return bad.Fault }

// flatEnvelope reads a flat file by the schema of its envelope, and makes a message of each child of the element at its body_xpath.
func (d *disassembly) flatEnvelope(
	ctx context.Context, source *xsd.Schema, body io.Reader, settings envelope.Settings, sink interchange.Sink,
) (envelope.Summary, error) {
	compiled, read, err := d.flatFile(source, interchange.Nothing, "")
	if err != nil {
		return envelope.Summary{}, err
	}
	from, to := io.Pipe()
	done := make(chan error, 1)
	var disagreement string
	go func() {
		summary, err := compiled.Disassemble(ctx, body, read, piped{to})
		disagreement = summary.Disagreement
		done <- err
		_ = to.CloseWithError(err) // a pipe has no error of its own
	}()
	summary, err := envelope.Split(ctx, from, settings, sink)
	_ = from.CloseWithError(errors.Join(err, context.Cause(ctx)))
	flatErr := <-done
	summary.Disagreement = disagreement
	if _, isFault := fault.Of(flatErr); isFault {
		return summary, flatErr // its place is in the file
	}
	return summary, errors.Join(err, flatErr)
}

var _ interchange.Sink = piped{}
