package envelope_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Any body is taken apart, or ends with a fault. Each message is a document of its own for others too, and messages that are put into an
// envelope come out of it as they were.
func FuzzMessagesGoIntoEnvelopesAndComeOutOfThem(f *testing.F) {
	const head = `<e:Batch xmlns:e="urn:env"><Source/><Orders`
	for _, body := range []string{
		`<a/>`, head + `><o>1</o><p:o xmlns:p="urn:p" e:x="1"/></Orders></e:Batch>`, head + ` xmlns="urn:d" xmlns:q="urn:&amp;q"><o q:a="b"><q:c/></o></Orders></e:Batch>`,
		`<Inner xmlns="urn:env"><x xmlns=""/><Batch><Orders xmlns=""><y/></Orders></Batch></Inner>`, head + `/></e:Batch>`, head + `><o></Orders></e:Batch>`,
		`<?xml version="1.0" encoding="iso-8859-1"?><!-- c --><a>` + "\xe9" + `</a>`, "\xff\xfe<\x00a\x00/\x00>\x00", `<a><![CDATA[<b>]]></a><!-- d -->`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		around := envelopes(t)
		for _, settings := range []envelope.Settings{
			{}, {Envelopes: around}, {Envelopes: around, Documents: []string{"o"}, Recover: interchange.Messages},
		} {
			c, summary, err := split(t, string(body), settings)
			if int64(len(c.messages)) != summary.Messages || int64(len(c.bad)) != summary.Bad {
				t.Fatalf("the summary is %+v of %d messages", summary, len(c.messages))
			}
			if err != nil {
				if found, is := fault.Of(err); !is || found.Remedy == "" {
					t.Fatalf("%q ends with %v, which is no fault with a remedy", body, err)
				}
				continue
			}
			for _, m := range c.messages {
				requireDocument(t, m)
			}
			if len(settings.Documents) == 0 {
				requireWrapped(t, c.messages, around)
			}
		}
	})
}

// requireDocument asks that encoding/xml, which knows the prefixes that are declared, reads a message, and that each prefix is.
func requireDocument(t *testing.T, message string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(message))
	declared := map[string]bool{"": true, "http://www.w3.org/XML/1998/namespace": true, "xmlns": true}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil && (strings.Contains(err.Error(), "invalid XML name") || strings.Contains(err.Error(), "expected")) {
			return // names of the fifth edition, which encoding/xml does not know
		}
		if err != nil {
			t.Fatalf("%q is no document: %v", message, err)
		}
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		for _, a := range start.Attr {
			if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
				declared[a.Value] = true
			}
		}
		if !declared[start.Name.Space] {
			t.Fatalf("%q: prefix %s is not declared", message, start.Name.Space)
		}
	}
}

func requireWrapped(t *testing.T, messages []string, around []envelope.Envelope) {
	t.Helper()
	for _, m := range messages {
		if strings.Contains(m, "urn:env") {
			return // an envelope, which would be opened too
		}
	}
	var out bytes.Buffer
	w, err := envelope.NewWrapper(&out, &around[0], text.Output{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := w.Add(strings.NewReader(m), "", nil); err != nil {
			t.Fatalf("%q is not put into an envelope: %v", m, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := split(t, out.String(), envelope.Settings{Envelopes: around})
	if err != nil || len(again.messages) != len(messages) {
		t.Fatalf("%q, put into an envelope, is\n%s\nand comes out as %q, %v", messages, out.String(), again.messages, err)
	}
	for i, m := range again.messages {
		// The declaration of the envelope's prefix comes with it, and nothing else is other.
		if got := strings.Replace(m, ` xmlns:env0="urn:env"`, "", 1); got != messages[i] {
			t.Fatalf("%q comes out as %q", messages[i], got)
		}
	}
}
