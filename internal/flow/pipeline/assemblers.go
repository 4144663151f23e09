package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/typing"
)

func assemblers() []Component {
	charset := setting("charset", CharsetName, "null", "Charset of what is written; without it UTF-8.")
	mark := setting("mark", Boolean, "false", "Whether a byte-order mark stands first.")
	demote := setting("demote", Boolean, "true", demoteMeaning)
	return []Component{
		{
			Name: "xml-assembler", Direction: directionSend, Stages: []string{stageAssemble}, make: makeXMLAssembler,
			Meaning: "Writes a message of XML, with the bytes that its root element has, in an envelope or alone.",
			Settings: []Setting{
				setting("envelope", MessageType, "null", "Message type of the envelope."),
				demote, charset, mark,
				setting("declaration", Boolean, "false", "Whether an XML declaration stands before the root."),
				setting("processing_instructions", Texts, "[]", "Instructions before the root, such as mso-application progid=\"Word.Document\"."),
			},
		},
		{
			Name: "flat-file-assembler", Direction: directionSend, Stages: []string{stageAssemble}, make: makeFlatAssembler,
			Meaning: "Writes a message of XML as a flat file, by the annotated schema of a message type.",
			Settings: []Setting{
				setting("document", MessageType, "null", "Message type whose schema is taken; without it that of the message."),
				setting("header", MessageType, "null", "Message type of what is written before the message."),
				setting("header_document", Text, "null", "The header as XML; without it that of the property "+HeaderProperty+
					", or what its schema says with the properties that it promotes."),
				setting("trailer", MessageType, "null", "Message type of what is written behind the message."),
				setting("trailer_document", Text, "null",
					"The trailer as XML; without it what its schema says with the properties that it promotes."),
				demote,
				setting("truncate", Boolean, "false", "Whether values that are too long for their positions are cut."),
				setting("charset", CharsetName, "null", "Charset of what is written, before the code page of the schema."),
				mark,
			},
		},
		{
			Name: "csv-assembler", Direction: directionSend, Stages: []string{stageAssemble}, make: makeCSVAssembler,
			Meaning: "Writes a message of XML or JSON whose parts are rows as CSV with a header line.",
			Settings: []Setting{
				setting("delimiter", Character, `","`, "The character between values."),
				setting("columns", Texts, "null", "Columns in their order; without it those of the first row."),
				setting("crlf", Boolean, "false", "Whether lines end with CR LF."),
				charset, mark,
			},
		},
		{
			Name: "json-assembler", Direction: directionSend, Stages: []string{stageAssemble}, make: makeJSONAssembler,
			Meaning: "Writes a message of JSON, with the bytes that it has.",
			Settings: []Setting{
				setting("as_array", Boolean, "false", "Whether the message is written as the only member of an array."),
				charset, mark,
			},
		},
	}
}

type xmlAssembler struct {
	envelope   *envelope.Envelope
	envelopeOf *compiledType
	demotes    bool
	output     text.Output
}

func makeXMLAssembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Envelope     string   `json:"envelope"`
		Charset      string   `json:"charset"`
		Mark         bool     `json:"mark"`
		Declaration  bool     `json:"declaration"`
		Instructions []string `json:"processing_instructions"`
		Demote       bool     `json:"demote"`
	}](c, settings)
	a := &xmlAssembler{demotes: s.Demote, output: text.Output{
		Charset: s.Charset, Mark: s.Mark, Declaration: s.Declaration, Instructions: s.Instructions,
	}}
	c.checkOutput(a.output)
	for _, instruction := range s.Instructions {
		if why := badInstruction(instruction); why != "" {
			c.fail("processing_instructions", &fault.Fault{
				Message: fmt.Sprintf("%q %s", instruction, why), Remedy: `give target and content, such as xml-stylesheet href="a.css"`,
			})
		}
	}
	if s.Envelope == "" {
		return a
	}
	if t := c.typeOf("envelope", s.Envelope); t != nil && len(t.problems) == 0 {
		var err error
		if a.envelope, err = t.envelope(); err != nil {
			c.fail("envelope", err)
		}
		a.envelopeOf = t
	}
	return a
}

// checkOutput refuses a charset that cannot be written with its mark.
func (c *compiling) checkOutput(o text.Output) {
	if w, err := o.NewWriter(io.Discard); err != nil {
		c.fail("mark", err)
	} else {
		_ = w.Close() // nothing was written
	}
}

func badInstruction(instruction string) string {
	target, _, _ := strings.Cut(instruction, " ")
	switch {
	case strings.Contains(instruction, "?>") || strings.ContainsAny(instruction, "\x00\r\n"):
		return "has ?> or a line end in it"
	case target == "" || strings.ContainsAny(target, "<>&?'\"=/\t") || target[0] >= '0' && target[0] <= '9' || target[0] == '-':
		return "begins with no name"
	case strings.EqualFold(target, "xml"):
		return "is a declaration, for which there is a setting"
	}
	return ""
}

// result implements [transformer].
func (a *xmlAssembler) result(Result, Source) Result { return written(xmlType, a.output) }

func written(contentType string, output text.Output) Result {
	r := Result{ContentType: contentType, Charset: output.Charset, Size: -1}
	if r.Charset == "" {
		r.Charset = text.UTF8.Name
	}
	return r
}

// transform implements [transformer].
func (a *xmlAssembler) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	var fields []typing.Field
	var filling *typing.Filling
	if a.demotes {
		fields = a.envelopeOf.fields(m.source)
		var err error
		if filling, err = m.types.of(m.source.Type).filling(m.source); err != nil {
			return err
		}
	}
	wrapper, err := envelope.NewWrapper(w, a.envelope, a.output, fields...)
	if err != nil {
		return err
	}
	if err := wrapper.Add(body, m.Charset, filling); err != nil {
		return err
	}
	return wrapper.Close()
}
