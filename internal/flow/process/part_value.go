package process

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/parley-broker/parley/internal/flow/parts"
	"github.com/parley-broker/parley/internal/flow/text"
)

// partValue is a message, or a part of one, in an expression. Bodies are read when they are asked for.
type partValue struct {
	r       *run
	message *Message
	kept    *keptPart
	found   *parts.Part
}

var (
	messageType = cel.OpaqueType("message")
	partType    = cel.OpaqueType("part")
)

// ConvertToType implements [ref.Val]: a part is converted as its text.
func (v *partValue) ConvertToType(to ref.Type) ref.Val {
	part, err := v.part()
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(part.Text()).ConvertToType(to)
}

// Equal implements [ref.Val]: parts are the same when they are written the same.
func (v *partValue) Equal(other ref.Val) ref.Val {
	o, is := other.(*partValue)
	if !is {
		return types.False
	}
	a, err := v.part()
	if err != nil {
		return types.WrapErr(err)
	}
	b, err := o.part()
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(bytes.Equal(a.Fragment(), b.Fragment()))
}

// Type implements [ref.Val].
func (v *partValue) Type() ref.Type {
	if v.message != nil {
		return messageType
	}
	return partType
}

// Value implements [ref.Val].
func (v *partValue) Value() any { return v }

func (v *partValue) encodable() any {
	if v.message != nil {
		return map[string]any{messageKey: v.message}
	}
	if v.kept == nil {
		v.kept = &keptPart{Text: string(v.found.Fragment()), IsJSON: v.found.IsJSON()}
	}
	return map[string]any{partKey: v.kept}
}

// part gives the part; that of a message is its whole body.
func (v *partValue) part() (parts.Part, error) {
	if v.found != nil {
		return *v.found, nil
	}
	var document *parts.Document
	var err error
	if v.message != nil {
		document, err = v.r.document(v.message)
	} else {
		text := v.kept.Text
		if !v.kept.IsJSON && !strings.HasPrefix(text, "<") { // of an attribute or a text
			text = "<text>" + text + "</text>"
		}
		document, err = parts.Parse([]byte(text))
	}
	if err != nil {
		return parts.Part{}, err
	}
	part := document.Root()
	if v.message == nil && !document.IsJSON() {
		part = part.Inner()
	}
	v.found = &part
	return part, nil
}

var declaredEncoding = regexp.MustCompile(`^(<\?xml[^>]*?encoding\s*=\s*)(?:"[^"]*"|'[^']*')`)

// body gives the body of a message in UTF-8.
func (r *run) body(m *Message) ([]byte, error) {
	if m.Body != nil || m.ID == 0 {
		return m.Body, nil
	}
	if body, isThere := r.bodies[m.ID]; isThere {
		return body, nil
	}
	if m.Size > parts.BytesMax {
		return nil, fmt.Errorf("a message of %d bytes is too large for expressions", m.Size)
	}
	reader, err := r.world.Open(r.ctx, *m)
	if err != nil {
		return nil, &worldError{err}
	}
	defer reader.Close()
	source, err := text.Open(reader, m.Charset, !strings.Contains(m.Content, "json"))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(source, parts.BytesMax+1))
	if err != nil {
		return nil, &worldError{err}
	}
	if !source.Charset.IsUTF8() {
		body = declaredEncoding.ReplaceAll(body, []byte(`${1}"utf-8"`))
	}
	r.bodies[m.ID] = body
	return body, nil
}

// worldError is an error of the world, which may end the step.
type worldError struct{ error }

func (e *worldError) Unwrap() error { return e.error }

func (r *run) document(m *Message) (*parts.Document, error) {
	if document, isThere := r.documents[m]; isThere {
		return document, nil
	}
	body, err := r.body(m)
	if err != nil {
		return nil, err
	}
	document, err := parts.Parse(body)
	if err == nil {
		r.documents[m] = document
	}
	return document, err
}

// find follows a path from a part on.
func (v *partValue) find(path string) ([]parts.Part, any, error) {
	compiled, isKnown := v.r.program.paths[path]
	if !isKnown { // one that an expression has put together
		var err error
		if compiled, err = parts.Compile(path, v.r.namespaces); err != nil {
			return nil, nil, err
		}
	}
	part, err := v.part()
	if err != nil {
		return nil, nil, err
	}
	return part.Find(compiled, &v.r.steps)
}

// value gives the text at a path; false when there is no such part.
func (v *partValue) value(path string) (string, bool, error) {
	found, value, err := v.find(path)
	switch {
	case err != nil:
		return "", false, err
	case value != nil:
		return fmt.Sprint(value), true, nil
	case len(found) == 0:
		return "", false, nil
	}
	return found[0].Text(), true, nil
}

// property gives a promoted property of a message, by its type.
func (v *partValue) property(name string) ref.Val {
	if v.message == nil {
		return types.NewErr("a part has no properties: its message has")
	}
	value, isThere := v.message.Promoted[name]
	if !isThere {
		if value, isThere = v.message.Written[name]; !isThere {
			if name == "MessageType" {
				return types.String(v.message.Type)
			}
			return types.String("")
		}
	}
	return typedProperty(value, v.r.program.properties[name])
}
