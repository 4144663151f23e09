package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

type flatDisassembler struct {
	schema         *flatfile.Schema
	envelope       *envelope.Envelope // of which the file is one; nil: it is none
	header         *compiledType
	settings       flatfile.ReadSettings
	preservesFront bool
}

func makeFlatDisassembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Document              string `json:"document"`
		Envelope              string `json:"envelope"`
		Header                string `json:"header"`
		Trailer               string `json:"trailer"`
		PreserveHeader        bool   `json:"preserve_header"`
		Recoverable           bool   `json:"recoverable"`
		RecoverRecords        bool   `json:"recover_records"`
		Validate              bool   `json:"validate"`
		Newline               string `json:"newline"`
		RequireFinalDelimiter bool   `json:"require_final_delimiter"`
		Charset               string `json:"charset"`
	}](c, settings)
	anyNewline := s.Newline == "any"
	d := &flatDisassembler{preservesFront: s.PreserveHeader, settings: flatfile.ReadSettings{
		Charset: s.Charset, Validate: s.Validate, RequireFinalDelimiter: s.RequireFinalDelimiter,
		Header: c.flatSchema("header", s.Header, anyNewline), Trailer: c.flatSchema("trailer", s.Trailer, anyNewline),
	}}
	d.settings.Recover = recovery(s.Recoverable)
	if s.RecoverRecords {
		d.settings.Recover = interchange.Records
	}
	if s.Header != "" {
		d.header = c.types.of(s.Header)
	}
	switch {
	case s.Envelope != "":
		c.checkFlatEnvelope(s.Document != "", s.Recoverable || s.RecoverRecords)
		d.envelope = c.flatEnvelope(s.Envelope)
		d.schema = c.flatSchema("envelope", s.Envelope, anyNewline)
	case s.Document != "":
		d.schema = c.flatSchema("document", s.Document, anyNewline)
	default:
		c.fail("document", &fault.Fault{
			Message: "component flat-file-disassembler needs document", Remedy: "give the message type of its messages, or envelope",
		})
		return nil
	}
	return d
}

// errRecognised ends a probe.
var errRecognised = errors.New("the first message was read")

// probe is the sink of a probe. Its error comes with the first message.
type probe struct{ isWritten bool }

func (p *probe) Begin(int64) (io.Writer, error) { p.isWritten = true; return io.Discard, nil }
func (p *probe) End(interchange.Message) error  { return errRecognised }
func (p *probe) Abort(int64) error              { return nil }
func (p *probe) Bad(bad interchange.Bad) error  { return bad.Fault }

// refuses implements [disassembler]: it reads the first message as far as the head goes.
func (d *flatDisassembler) refuses(ctx context.Context, head []byte, isWhole bool, source Source) string {
	settings := d.settings
	settings.Recover, settings.Charset = interchange.Nothing, d.charset(source)
	_, err := d.schema.Disassemble(ctx, bytes.NewReader(head), settings, &probe{})
	f, is := fault.Of(err)
	switch {
	case err == nil, errors.Is(err, errRecognised):
		return ""
	case is && !isWhole && f.Place.Byte >= int64(len(head)/2):
		return "" // the message goes on behind what was seen
	}
	return err.Error()
}

func (d *flatDisassembler) charset(source Source) string {
	if d.settings.Charset != "" {
		return d.settings.Charset
	}
	return source.Charset
}

// disassemble implements [disassembler].
func (d *flatDisassembler) disassemble(ctx context.Context, body io.Reader, run *running) error {
	run.kind, run.contentType, run.recovers = d.schema.MessageType(), xmlType, d.settings.Recover != interchange.Nothing
	run.isConverted = true
	settings := d.settings
	settings.Charset, settings.Opened = run.charsetOf(d.settings.Charset), run.opened
	if settings.Header != nil {
		settings.HeaderRead = func(header []byte) { d.headerRead(run, header) }
	}
	if d.envelope != nil {
		return d.splitEnvelope(ctx, body, settings, run)
	}
	_, err := d.schema.Disassemble(ctx, body, settings, run)
	return err
}
