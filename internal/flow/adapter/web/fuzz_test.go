package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Any header may come: the reader takes nothing for a signature that does not stand in it, and compares little of it.
func FuzzSignaturesAreReadFromAnyHeader(f *testing.F) {
	for _, seed := range []string{"sha256=00", "t=5,v1=00ff,v1=zz", "v1,AAAA v1,BBBB", "sha256=", ",,,", "sha256=" + strings.Repeat("0", 64)} {
		f.Add(seed, "sha256=", "t=", true)
		f.Add(seed, "v1,", "", false)
	}
	f.Fuzz(func(t *testing.T, value, prefix, timestampPrefix string, isHex bool) {
		s := defaultSignature()
		s.Prefix, s.TimestampPrefix = prefix, timestampPrefix
		if !isHex {
			s.Encoding = "base64"
		}
		signatures, timestamp := s.given(http.Header{"X-Signature-256": {value}})
		if len(signatures) > signaturesMax {
			t.Errorf("%d signatures were read", len(signatures))
		}
		if !strings.Contains(value, timestampPrefix+timestamp) && timestamp != "" {
			t.Errorf("the time %q does not stand in %q", timestamp, value)
		}
		s.isTimely(timestamp, time.Now())
		// Ours is among those of the header that we write.
		if !s.isReadable() {
			return
		}
		written := s.written([]byte("sum"), "123")
		header := http.Header{}
		for name, text := range written {
			header.Set(name, text)
		}
		signatures, timestamp = s.given(header)
		if len(signatures) != 1 || string(signatures[0]) != "sum" || timestampPrefix != "" && timestamp != "123" {
			t.Errorf("of %q were read %q and %q", written, signatures, timestamp)
		}
	})
}

func FuzzTemplatesMakeNoHeader(f *testing.F) {
	f.Add("{urn:p#A}-{{{MessageID}", "value")
	f.Add("{", "\r\n")
	f.Add("a\r\nb", "x")
	f.Fuzz(func(t *testing.T, text, value string) {
		parsed, err := parseTemplate(text)
		if err != nil {
			return
		}
		got, err := parsed.of(&adapter.Message{Written: map[string]string{"urn:p#A": value}})
		if err == nil && strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("%q with %q gave %q", text, value, got)
		}
		if err == nil && !strings.Contains(text, "{") && got != strings.TrimSpace(text) {
			t.Errorf("%q gave %q", text, got)
		}
	})
}
