package function

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// documents are the functions of JSON.
var documents = []Function{
	{Name: "ISJSON", Parameters: "t", Result: always(intType), Call: isJSON},
	{Name: "JSON_VALUE", Parameters: "tt", Result: always(value.Sized(value.NVarChar, value.MaxUnicode)), Call: jsonValue},
	{Name: "JSON_QUERY", Parameters: "t?t", Result: always(value.Type{Kind: value.NVarChar, Length: value.Max}), Call: jsonQuery},
	{Name: "JSON_PATH_EXISTS", Parameters: "tt", Result: always(intType), Call: jsonExists},
}

// escapeJSON escapes text for JSON: quotes, backslashes, slashes and control characters.
func escapeJSON(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	if !strings.EqualFold(a[1].Raw(), "json") {
		return value.Null(result), nil
	}
	var b strings.Builder
	for _, r := range a[0].Raw() {
		switch {
		case strings.ContainsRune("\"\\/", r):
			b.WriteString("\\" + string(r))
		case r == '\b':
			b.WriteString("\\b")
		case r == '\f':
			b.WriteString("\\f")
		case r == '\n':
			b.WriteString("\\n")
		case r == '\r':
			b.WriteString("\\r")
		case r == '\t':
			b.WriteString("\\t")
		case r < ' ':
			b.WriteString("\\u00" + strconv.FormatInt(int64(r)>>4, 16) + strconv.FormatInt(int64(r)&15, 16))
		default:
			b.WriteRune(r)
		}
	}
	return value.TextOf(result, b.String()), nil
}

func isJSON(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	text := strings.TrimSpace(a[0].Raw())
	if json.Valid([]byte(text)) && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) {
		return number(result, 1)
	}
	return number(result, 0)
}

// errNoPath says that a path leads nowhere.
var errNoPath = errors.New("no such property")

func jsonValue(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	found, isStrict, err := jsonAt(a[0].Raw(), a[1].Raw())
	switch {
	case err != nil:
		return jsonProblem(result, isStrict, err)
	case found[0] == '{' || found[0] == '[':
		if isStrict {
			return value.Value{}, fault.New(13623)
		}
		return value.Null(result), nil
	case found[0] == '"':
		text := unquoted(found)
		if value.UnitsOf(text) > value.MaxUnicode {
			if isStrict {
				return value.Value{}, fault.New(13625)
			}
			return value.Null(result), nil
		}
		return value.TextOf(result, text), nil
	case string(found) == "null":
		return value.Null(result), nil
	}
	return value.TextOf(result, string(found)), nil
}

// unquoted gives the text of a string that was read as JSON already.
func unquoted(part json.RawMessage) (text string) {
	_ = json.Unmarshal(part, &text)
	return text
}

func jsonQuery(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	path := "$"
	if len(a) > 1 {
		path = a[1].Raw()
	}
	found, isStrict, err := jsonAt(a[0].Raw(), path)
	switch {
	case err != nil:
		return jsonProblem(result, isStrict, err)
	case found[0] != '{' && found[0] != '[':
		if isStrict {
			return value.Value{}, fault.New(13624)
		}
		return value.Null(result), nil
	}
	return value.TextOf(result, string(found)), nil
}

func jsonExists(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	_, _, problem := jsonAt(a[0].Raw(), a[1].Raw())
	if problem == nil {
		return number(result, 1)
	}
	return number(result, 0)
}

func jsonProblem(result value.Type, isStrict bool, err error) (value.Value, *fault.Error) {
	var syntax *json.SyntaxError
	var bad *fault.Error
	switch {
	case errors.As(err, &bad):
		return value.Value{}, bad
	case errors.As(err, &syntax):
		return value.Value{}, fault.New(13609, ".", syntax.Offset-1)
	case errors.Is(err, errNoPath) && !isStrict:
		return value.Null(result), nil
	case errors.Is(err, errNoPath):
		return value.Value{}, fault.New(13608)
	}
	return value.Value{}, fault.New(13609, ".", 0)
}

// jsonAt gives the part of a document at a path: $.a.b[0]."c d", behind lax or strict.
func jsonAt(text, path string) (part json.RawMessage, isStrict bool, err error) {
	path = strings.TrimSpace(path)
	if rest, found := strings.CutPrefix(path, "strict "); found {
		isStrict, path = true, strings.TrimSpace(rest)
	} else if rest, found := strings.CutPrefix(path, "lax "); found {
		path = strings.TrimSpace(rest)
	}
	var document json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&document); err != nil {
		return nil, isStrict, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, isStrict, fault.New(13609, ".", decoder.InputOffset())
	}
	steps, bad := jsonSteps(path)
	if bad != nil {
		return nil, isStrict, bad
	}
	for _, step := range steps {
		next, found := jsonStep(document, step)
		if !found {
			return nil, isStrict, errNoPath
		}
		document = next
	}
	return bytes.TrimSpace(document), isStrict, nil
}

// A pathStep is a property, or an element where property is empty.
type pathStep struct {
	property string
	element  int
}

func jsonSteps(path string) ([]pathStep, *fault.Error) {
	bad := func(rest string) *fault.Error {
		at := len(path) - len(rest)
		if rest == "" {
			rest = "."
		}
		return fault.New(13607, rest[:1], at)
	}
	rest, found := strings.CutPrefix(path, "$")
	if !found {
		return nil, bad(path)
	}
	var steps []pathStep
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, ".\""):
			name, after, ok := strings.Cut(rest[2:], "\"")
			if !ok {
				return nil, bad(rest)
			}
			steps, rest = append(steps, pathStep{property: name}), after
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			if end == 1 {
				return nil, bad(rest[1:])
			}
			steps, rest = append(steps, pathStep{property: rest[1:end]}), rest[end:]
		case rest[0] == '[':
			digits, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(strings.TrimSpace(digits))
			if !ok || err != nil || n < 0 {
				return nil, bad(rest[1:])
			}
			steps, rest = append(steps, pathStep{element: n}), after
		default:
			return nil, bad(rest)
		}
	}
	return steps, nil
}

func jsonStep(document json.RawMessage, step pathStep) (json.RawMessage, bool) {
	if step.property != "" {
		var object map[string]json.RawMessage
		if json.Unmarshal(document, &object) != nil {
			return nil, false
		}
		next, found := object[step.property]
		return next, found
	}
	var array []json.RawMessage
	if json.Unmarshal(document, &array) != nil || step.element >= len(array) {
		return nil, false
	}
	return array[step.element], true
}
