package envelope

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/typing"
)

// A Wrapper puts messages into an envelope.
type Wrapper struct {
	out   io.WriteCloser
	close string
}

// NewWrapper begins a body on w. Without an envelope it holds the messages alone: one, to be XML. An envelope has what its schema requires,
// and fields.
func NewWrapper(w io.Writer, e *Envelope, output text.Output, fields ...typing.Field) (*Wrapper, error) {
	out, err := output.NewWriter(w)
	if err != nil {
		return nil, err
	}
	wrapper := &Wrapper{out: out}
	var begin strings.Builder
	begin.WriteString(output.DeclarationText())
	if e != nil {
		before, after := e.around(fields)
		begin.WriteString(before)
		wrapper.close = after
	}
	_, err = io.WriteString(out, begin.String())
	return wrapper, err
}

// around gives what stands before and behind the messages. Where the schema does not lead to their place, that is the elements on the way.
func (e *Envelope) around(fields []typing.Field) (before, after string) {
	if e.element != nil {
		if before, after, hasBody, _ := typing.Instance(e.element, fields, e.Body); hasBody {
			return before, after
		}
	}
	spaces := map[string]string{}
	for _, step := range e.Body.Steps {
		name, declaration := step.Local, ""
		if step.Space != "" {
			prefix, known := spaces[step.Space]
			if !known {
				prefix = fmt.Sprintf("env%d", len(spaces))
				spaces[step.Space] = prefix
				declaration = " xmlns:" + prefix + `="` + typing.EscapeValue(step.Space) + `"`
			}
			name = prefix + ":" + step.Local
		}
		before += "<" + name + declaration + ">"
		after = "</" + name + ">" + after
	}
	return before, after
}

// Add appends a message: its root element, with the bytes that it has. The charset counts where neither a byte-order mark nor the
// declaration of the message says another; empty: UTF-8. A filling writes values into it; nil: none.
func (w *Wrapper) Add(message io.Reader, charset string, filling *typing.Filling) error {
	source, err := text.Open(message, charset, true)
	if err != nil {
		return err
	}
	defer source.Release()
	s, release := scannerOf(source)
	defer release()
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.Depth() == 0 {
			continue // what stands around the root, and the declaration of another charset
		}
		raw := s.Raw()
		if filling != nil {
			raw = filling.Token(s, kind)
		}
		if _, err := w.out.Write(raw); err != nil {
			return err
		}
	}
}

// Close ends the body.
func (w *Wrapper) Close() error {
	if _, err := io.WriteString(w.out, w.close); err != nil {
		return err
	}
	return w.out.Close()
}
