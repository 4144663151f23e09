package envelope

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/text"
)

func escape(value string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\t", "&#9;", "\n", "&#10;", "\r", "&#13;").Replace(value)
}

// A Wrapper puts messages into an envelope.
type Wrapper struct {
	out   io.WriteCloser
	close string
}

// NewWrapper begins a body on w. Without an envelope it holds the messages alone: one, to be XML.
func NewWrapper(w io.Writer, e *Envelope, output text.Output) (*Wrapper, error) {
	out, err := output.NewWriter(w)
	if err != nil {
		return nil, err
	}
	wrapper := &Wrapper{out: out}
	var begin strings.Builder
	begin.WriteString(output.DeclarationText())
	if e != nil {
		spaces := map[string]string{}
		for _, step := range e.Body.Steps {
			name, declaration := step.Local, ""
			if step.Space != "" {
				prefix, known := spaces[step.Space]
				if !known {
					prefix = fmt.Sprintf("env%d", len(spaces))
					spaces[step.Space] = prefix
					declaration = " xmlns:" + prefix + `="` + escape(step.Space) + `"`
				}
				name = prefix + ":" + step.Local
			}
			begin.WriteString("<" + name + declaration + ">")
			wrapper.close = "</" + name + ">" + wrapper.close
		}
	}
	_, err = io.WriteString(out, begin.String())
	return wrapper, err
}

// Add appends a message: its root element, with the bytes that it has. The charset counts where neither a byte-order mark nor the
// declaration of the message says another; empty: UTF-8.
func (w *Wrapper) Add(message io.Reader, charset string) error {
	source, err := text.Open(message, charset, true)
	if err != nil {
		return err
	}
	defer source.Release()
	s, release := scannerOf(source)
	defer release()
	for {
		_, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.Depth() == 0 {
			continue // what stands around the root, and the declaration of another charset
		}
		if _, err := w.out.Write(s.Raw()); err != nil {
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
