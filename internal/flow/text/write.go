package text

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// An Output says how a body is written.
type Output struct {
	Charset     string // name or code page, default UTF-8
	Mark        bool   // whether a byte-order mark stands first
	Declaration bool   // whether XML begins with a declaration
	// Instructions are processing instructions that stand before the root of XML, each its target and what follows it.
	Instructions []string
}

// NewWriter writes UTF-8 text in the charset of o. Close ends it and leaves w open.
func (o Output) NewWriter(w io.Writer) (io.WriteCloser, error) {
	charset := UTF8
	if o.Charset != "" {
		found, err := Lookup(o.Charset)
		if err != nil {
			return nil, &fault.Fault{Message: err.Error(), Remedy: "name a charset of the Internet's registry or the number of a code page"}
		}
		charset = found
	}
	if o.Mark {
		if charset.mark == nil {
			return nil, &fault.Fault{
				Message: charset.Name + " has no byte-order mark", Remedy: "leave the mark away, or write UTF-8 or UTF-16",
			}
		}
		if _, err := w.Write(charset.mark); err != nil {
			return nil, err
		}
	}
	if charset.IsUTF8() {
		return unclosed{w}, nil
	}
	return &encoded{w: transform.NewWriter(w, charset.encoding.NewEncoder()), charset: charset}, nil
}

// DeclarationText is the XML declaration that o asks for, and the instructions; or nothing.
func (o Output) DeclarationText() string {
	var b strings.Builder
	if o.Declaration {
		b.WriteString(o.declaration())
	}
	for _, instruction := range o.Instructions {
		b.WriteString("<?" + instruction + "?>")
	}
	return b.String()
}

func (o Output) declaration() string {
	name := o.Charset
	if found, err := Lookup(name); name == "" || err == nil && found == UTF8 {
		name = "utf-8"
	} else if err == nil && (found == UTF16LE || found == UTF16BE) {
		name = "utf-16" // the order is for the mark to say
	}
	return `<?xml version="1.0" encoding="` + name + `"?>`
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// encoded names the character that its charset does not have.
type encoded struct {
	w       *transform.Writer
	charset *Charset
}

func (e *encoded) Write(p []byte) (int, error) {
	n, err := e.w.Write(p)
	if err == nil {
		return n, nil
	}
	return n, e.explain(p, err)
}

func (e *encoded) Close() error { return e.explain(nil, e.w.Close()) }

// unencodable is how encoders refuse a character.
type unencodable interface {
	error
	Replacement() byte
}

func (e *encoded) explain(p []byte, err error) error {
	if err == nil || errors.Is(err, io.ErrShortWrite) {
		return err
	}
	if _, ok := errors.AsType[unencodable](err); !ok && !errors.Is(err, encoding.ErrInvalidUTF8) {
		return err
	}
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if _, one := e.charset.encoding.NewEncoder().Bytes(p[:size]); one != nil {
			return &fault.Fault{
				Message: fmt.Sprintf("%s has no character %q (U+%04X)", e.charset.Name, r, r), Err: err,
				Remedy: "write the body in UTF-8, or in a charset that has it",
			}
		}
		p = p[size:]
	}
	return err
}
