package pipeline

import (
	"bytes"
	"context"
	"io"
	"maps"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// headerRead takes the header of a flat file: what its message type promotes, each message behind it has.
func (d *flatDisassembler) headerRead(run *running, header []byte) {
	if d.preservesFront {
		run.write(HeaderProperty, string(header))
	}
	if d.header == nil || d.header.xml == nil {
		return
	}
	found, err := d.header.xml.NewRun().Read(xmlscan.New(bytes.NewReader(header), xmlscan.Limits{}))
	if err != nil {
		return // what a flat file was made of is XML
	}
	// The maps of the source are those of the caller.
	result := Message{Promoted: maps.Clone(run.source.Promoted), Written: maps.Clone(run.written)}
	run.properties(&message{typed: d.header, values: found.Values}, &result)
	run.source.Promoted, run.written = result.Promoted, result.Written
}

// checkFlatEnvelope refuses settings that an envelope leaves without a meaning.
func (c *compiling) checkFlatEnvelope(hasDocument, recovers bool) {
	if hasDocument {
		c.fail("document", &fault.Fault{
			Message: "document and envelope both say what the file is", Remedy: "leave document away: the messages are the parts of the envelope",
		})
	}
	if recovers {
		c.fail("envelope", &fault.Fault{
			Message: "an envelope of a flat file is read as a whole, so nothing of it goes on where a part is bad",
			Remedy:  "set recoverable and recover_records to false, or read the parts by document, header and trailer",
		})
	}
}

// flatEnvelope gives the envelope that the schema of a flat file describes.
func (c *compiling) flatEnvelope(name string) *envelope.Envelope {
	t := c.typeOf("envelope", name)
	if t == nil || len(t.problems) > 0 {
		return nil
	}
	e, err := t.envelope()
	if err != nil {
		c.fail("envelope", err)
	}
	return e
}

// splitEnvelope reads the file as one envelope, and makes a message of each of its parts, which has the type of its root.
func (d *flatDisassembler) splitEnvelope(ctx context.Context, body io.Reader, settings flatfile.ReadSettings, run *running) error {
	run.kind, run.isWatched = "", true
	run.validators = run.xmlValidators(false)
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := d.schema.Disassemble(ctx, body, settings, envelope.Piped{To: to})
		_ = to.CloseWithError(err) // a pipe has no error of its own
		done <- err
	}()
	_, err := envelope.Split(ctx, from, envelope.Settings{Envelopes: []envelope.Envelope{*d.envelope}, Watcher: run}, run)
	_ = from.CloseWithError(io.ErrClosedPipe) // a pipe has no error of its own
	flatErr := <-done
	if _, isFault := fault.Of(flatErr); isFault {
		return flatErr // its place is in the file
	}
	if err == nil {
		err = flatErr
	}
	return err
}
