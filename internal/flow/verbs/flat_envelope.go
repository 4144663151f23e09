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
		summary, err := compiled.Disassemble(ctx, body, read, envelope.Piped{To: to})
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
