package server

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// Each field that is signed over is one that the header has, and who is to be the author is one line.
func FuzzReadHeader(f *testing.F) {
	f.Add([]byte("From: a@b\r\n c\r\nTo: x\r\nFROM : y\r\n\r\nbody"))
	f.Add([]byte(" x\r\n: y\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		names, from, err := readHeader(bytes.NewReader(text))
		if err != nil {
			return
		}
		header, _, _ := bytes.Cut(text, []byte("\r\n\r\n"))
		if len(names) > bytes.Count(header, []byte("\r\n"))+1 || len(from) > len(header) {
			t.Errorf("%q has the fields %q and is from %q", text, names, from)
		}
	})
}

func FuzzHop(f *testing.F) {
	f.Add("DNS/internet/example.com")
	f.Add("MAILBOX/a")
	f.Fuzz(func(t *testing.T, lane string) {
		if hop := hopOf(lane); hop.Name != "" && laneOf(hop) != lane || hop == (send.Hop{}) && lane != "" && lane != "//" && lane != "/" {
			t.Errorf("%q is read as %+v", lane, hop)
		}
	})
}

// A configuration is used whole, or refused: the database has checked it, and another version of it may have been what wrote it.
func FuzzSettings(f *testing.F) {
	f.Add(`{"version": 1, "objects": {"organization": {"organization": {"fqdn": "mx.example.com"}}}}`)
	f.Add(`{"objects": {"receive connector": {"a": {"bindings": ["127.0.0.1:25"], "remote_ranges": ["::/0"], "permission_groups": ["b"]}}, "permission group": {"b": {"rights": ["SUBMIT"]}}}}`)
	f.Add(`{"objects": {"send connector": {"a": {"enabled": true, "tls": "DANE", "routing": "SMART_HOST", "smart_hosts": [{"host": "h", "port": 1}]}}, "mailbox store": {"m": {"driver": "MAILDIR", "address": "/x/{local}"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := readSettings(json.RawMessage(text), "host"); err == nil && (s == nil || s.receive == nil || s.fqdn == "") {
			t.Errorf("%q gave %+v", text, s)
		}
	})
}
