package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/csvfile"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/typing"
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
	}](c, settings)
	d := &csvDisassembler{kind: s.Type, settings: csvfile.Settings{
		Delimiter: character(s.Delimiter), Comment: character(s.Comment), Charset: s.Charset, AsJSON: s.As == "json", Split: s.Split,
		Root: s.Root, Row: s.Row, Namespace: s.Namespace, Recover: recovery(s.Recoverable),
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
	return d
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
