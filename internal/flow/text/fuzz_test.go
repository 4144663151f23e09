package text_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Any body is read as UTF-8, or ends with a fault at its place, however it comes in. The text is written in its charset and read again as
// the same.
func FuzzBodiesAreReadAndWrittenInTheirCharset(f *testing.F) {
	for _, body := range []string{
		"", "a", "\xef\xbb\xbfa", "\xff\xfea\x00", "\xfe\xff\x00a", "\xff\xfe\x00\x00a\x00\x00\x00", "\xff\xfe\x00\xd8", "\xe4", "\xe2\x82", "\x80\x81\x82",
		`<?xml version="1.0" encoding="windows-1252"?><a>` + "\x80</a>", `<?xml version="1.0" encoding="x"?>`, "<\x00a\x00", "\x00<\x00a",
	} {
		for i := range charsets {
			f.Add([]byte(body), byte(i), true)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, which byte, isXML bool) {
		setting := charsets[int(which)%len(charsets)]
		source, got, err := opened(bytes.NewReader(body), setting, isXML)
		_, slow, slowErr := opened(iotest.OneByteReader(bytes.NewReader(body)), setting, isXML)
		if !bytes.Equal(got, slow) || (err == nil) != (slowErr == nil) {
			t.Fatalf("%q is read as %q, %v, and byte by byte as %q, %v", body, got, err, slow, slowErr)
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q is read as %q, which is no UTF-8", body, got)
		}
		if err != nil {
			if found, is := fault.Of(err); !is || found.Remedy == "" || found.Place.Byte > int64(len(body)) {
				t.Fatalf("%q ends with %v, which is no fault with a remedy", body, err)
			}
			return
		}
		if which := source.Charset.Name; which == "shift_jis" || which == "gb18030" || which == "gbk" {
			return // bytes that stand for no character there are read as controls, which have no bytes
		}
		var out bytes.Buffer
		w, err := text.Output{Charset: source.Charset.Name, Mark: source.MarkBytes > 0}.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Write(got); err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatalf("%q is read as %q, which is not written in %s: %v", body, got, source.Charset.Name, err)
		}
		_, again, err := opened(&out, source.Charset.Name, false)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q, written in %s, is read as %q, %v", got, source.Charset.Name, again, err)
		}
	})
}

var charsets = []string{"", "utf-8", "utf-16", "utf-16be", "windows-1252", "iso-8859-1", "1250", "shift_jis", "gb18030", "utf-32le"}

func opened(body io.Reader, setting string, isXML bool) (*text.Source, []byte, error) {
	source, err := text.Open(body, setting, isXML)
	if err != nil {
		return nil, nil, err
	}
	got, err := io.ReadAll(source)
	return source, got, err
}
