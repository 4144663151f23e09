package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/csvfile"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

type csvDisassembler struct {
	settings csvfile.Settings
	kind     string
}

func makeCSVDisassembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Delimiter   string `json:"delimiter"`
		Comment     string `json:"comment"`
		As          string `json:"as"`
		Split       bool   `json:"split"`
		Root        string `json:"root"`
		Row         string `json:"row"`
		Namespace   string `json:"namespace"`
		Type        string `json:"type"`
		Recoverable bool   `json:"recoverable"`
		Charset     string `json:"charset"`

		Columns []string `json:"columns"`
	}](c, settings)
	d := &csvDisassembler{kind: s.Type, settings: csvfile.Settings{
		Delimiter: character(s.Delimiter), Comment: character(s.Comment), Charset: s.Charset, AsJSON: s.As == "json", Split: s.Split,
		Root: s.Root, Row: s.Row, Namespace: s.Namespace, Recover: recovery(s.Recoverable),
		Columns: s.Columns,
	}}
	for setting, name := range map[string]string{"root": s.Root, "row": s.Row} {
		if csvfile.ElementName(name) != name {
			c.fail(setting, &fault.Fault{Message: name + " is no name of an element", Remedy: "give a name such as Orders"})
		}
	}
	for setting, mark := range map[string]string{"delimiter": s.Delimiter, "comment": s.Comment} {
		if mark == "\"" || mark == "\n" || mark == "\r" || setting == "comment" && mark == s.Delimiter {
			c.fail(setting, &fault.Fault{Message: setting + " is a quote, a line end or the other mark", Remedy: "give another character"})
		}
	}
	switch {
	case !d.settings.AsJSON && s.Type != "":
		c.fail("type", &fault.Fault{
			Message: "type is for messages in JSON", Remedy: "set root and namespace, which are the type of messages in XML, or as: json",
		})
	case d.settings.AsJSON && s.Type != "":
		c.typeOf("type", s.Type)
	case !d.settings.AsJSON:
		d.kind = typing.TypeOf(s.Namespace, s.Root)
	}
	d.settings.Known = knownColumns(c.types.of(d.kind))
	return d
}

// knownColumns gives the names of elements below the root of an XML schema, or of members that a JSON Schema lists; none where nothing is
// known, or where others may come.
func knownColumns(t *compiledType) []string {
	var names []string
	switch {
	case t == nil || t.schema == nil:
	case t.root != nil:
		names, isOpen := namesBelow(t.root.Content, nil, 0)
		if !isOpen && !t.root.HasAny && !t.root.IsAnything {
			return names
		}
	case t.schema.IsJSON():
		type members map[string]json.RawMessage
		var schema struct {
			Properties members `json:"properties"`
			Items      struct {
				Properties members `json:"properties"`
			} `json:"items"`
		}
		if json.Unmarshal([]byte(t.schema.Documents[t.schema.File]), &schema) == nil {
			names = slices.Sorted(maps.Keys(schema.Items.Properties))
			if len(names) == 0 {
				names = slices.Sorted(maps.Keys(schema.Properties))
			}
		}
	}
	return names
}

// deepestRow is how many levels below the root columns may be.
const deepestRow = 3

// namesBelow adds the names of elements of a group and of what is below; isOpen: others may come.
func namesBelow(g *xsd.Group, names []string, depth int) (_ []string, isOpen bool) {
	if g == nil || depth > deepestRow {
		return names, depth > deepestRow
	}
	isOpen = g.HasAny
	for _, part := range g.Parts {
		var below bool
		switch {
		case part.Element != nil:
			e := part.Element
			names = append(names, e.Name.Local)
			isOpen = isOpen || e.HasAny || e.IsAnything || e.Same != nil
			names, below = namesBelow(e.Content, names, depth+1)
		case part.Group != nil:
			names, below = namesBelow(part.Group, names, depth)
		default:
			below = true
		}
		isOpen = isOpen || below
	}
	return names, isOpen
}

func character(written string) rune {
	if written == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(written)
	return r
}

// refuses implements [disassembler]: a body is CSV whose first lines can be read, and do not begin as XML or JSON does.
func (d *csvDisassembler) refuses(ctx context.Context, head []byte, isWhole bool, source Source) string {
	if first := bytes.TrimLeft(head, "\uFEFF \t\r\n"); len(first) > 0 && (first[0] == '<' || first[0] == '{' || first[0] == '[') {
		return "it begins as XML or JSON does"
	}
	settings := d.settings
	settings.Split, settings.Recover = true, interchange.Nothing
	if settings.Charset == "" {
		settings.Charset = source.Charset
	}
	summary, err := csvfile.Read(ctx, bytes.NewReader(head), settings, &probe{})
	if err == nil || errors.Is(err, errRecognised) || !isWhole && len(summary.Columns) > 0 && summary.Rows > 0 {
		return ""
	}
	return err.Error()
}

// disassemble implements [disassembler].
func (d *csvDisassembler) disassemble(ctx context.Context, body io.Reader, run *running) error {
	run.kind, run.contentType, run.isText, run.recovers = d.kind, xmlType, true, d.settings.Recover != interchange.Nothing
	run.isConverted = true
	if d.settings.AsJSON {
		run.contentType, run.isJSON = jsonType, true
		if run.kind == "" {
			run.kind = run.source.Type
		}
	}
	settings := d.settings
	settings.Charset, settings.Opened = run.charsetOf(d.settings.Charset), run.opened
	settings.HeaderRead = func(line []byte) { run.prefix = line }
	_, err := csvfile.Read(ctx, body, settings, run)
	return err
}
