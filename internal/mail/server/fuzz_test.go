package server

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// The header that is read before a message leaves is a part of the message, up to its first empty line.
func FuzzLeavingHeader(f *testing.F) {
	f.Add([]byte("From: a@b\r\n c\r\nTo: x\r\nFROM : y\r\n\r\nbody"))
	f.Add([]byte("\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		header, err := readLeavingHeader(bytes.NewReader(text))
		if err == nil && !bytes.HasPrefix(text, header) {
			t.Errorf("%q has the header %q", text, header)
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
		s, err := reading{host: "host"}.settings(json.RawMessage(text))
		if err == nil && (s == nil || s.receive == nil || s.fqdn == "") {
			t.Errorf("%q gave %+v", text, s)
		}
	})
}
