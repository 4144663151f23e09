package envelope

import (
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

// Piped gives the only envelope of a file, as its parser makes it, to who takes it apart at the other end of the pipe.
type Piped struct{ To *io.PipeWriter }

var _ interchange.Sink = Piped{}

// Begin implements [interchange.Sink].
func (p Piped) Begin(number int64) (io.Writer, error) {
	if number > 1 {
		return nil, &fault.Fault{Message: "a second envelope in the file", Number: number, Remedy: "send one envelope in a file"}
	}
	return p.To, nil
}

// End implements [interchange.Sink].
func (p Piped) End(interchange.Message) error { return nil }

// Abort implements [interchange.Sink].
func (p Piped) Abort(int64) error { return nil }

// Bad implements [interchange.Sink].
func (p Piped) Bad(bad interchange.Bad) error { return bad.Fault }
