package pipeline_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// archiveOf makes an archive of zip.
func archiveOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := w.Create(name)
		if err == nil {
			_, err = file.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// entityOf makes a body of MIME of a text and a document of XML.
func entityOf(document string) string {
	return "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThe order.\r\n" +
		"--b\r\nContent-Type: application/xml; charset=utf-8\r\nContent-Disposition: attachment; filename=order.xml\r\n" +
		"Content-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(document)) + "\r\n--b--\r\n"
}

func TestAFileOfAnArchiveBecomesTheBody(t *testing.T) {
	t.Parallel()
	p := receive(t, `{"decode": [{"component": "zip-decoder", "settings": {"entry": "*.xml"}}], "disassemble": [{"component": "xml-disassembler"}]}`)
	archive := archiveOf(t, map[string]string{"in/": "", "in/order.xml": order, "readme.txt": "read me"})
	c, err := run(t, p, body(archive))
	if err != nil || c.bodies() != order || c.good[0].Promoted["SourceFileName"] != "order.xml" {
		t.Errorf("it gives %q, %v", c.bodies(), err)
	}
	for want, broken := range map[string]string{
		"no archive of zip": order, "no archive": archive[:len(archive)-9], "no file *.xml": archiveOf(t, map[string]string{"a": "b"}),
		"2 files *.xml": archiveOf(t, map[string]string{"a.xml": order, "b.xml": order}),
	} {
		_, err = run(t, p, body(broken))
		requireFailure(t, err, "receive.", want)
	}
	// A byte of what is packed was changed: its checksum says so.
	changed := []byte(archiveOf(t, map[string]string{"order.xml": strings.Repeat(order, 3)}))
	changed[60] ^= 0x10
	_, err = run(t, p, body(string(changed)))
	requireFailure(t, err, "receive.", "")
}

// A small body may not become a large one, whatever it says of its size.
func TestAPackedBodyCostsNoMoreThanItsLimits(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 4<<20)
	many := map[string]string{}
	for n := range 20 {
		many[fmt.Sprint(n)] = ""
	}
	lies := []byte(archiveOf(t, map[string]string{"a": zeros}))
	for at := range lies { // the directory says that nothing is packed in much
		if bytes.HasPrefix(lies[at:], []byte("PK\x01\x02")) {
			copy(lies[at+20:], []byte{0, 0, 0x40, 0, 0, 0, 0x40, 0})
		}
	}
	for name, c := range map[string]struct{ component, content, want string }{
		"gzip, bytes":         {`"gzip-decoder", "settings": {"max_bytes": 1000000, "max_ratio": 100000}`, packedBy(t, zeros), "1000000 bytes"},
		"gzip, ratio":         {`"gzip-decoder", "settings": {"max_ratio": 200}`, packedBy(t, zeros), "200 times"},
		"zip, bytes":          {`"zip-decoder", "settings": {"max_bytes": 1000000, "max_ratio": 100000}`, archiveOf(t, map[string]string{"a": zeros}), "1000000 bytes"},
		"zip, ratio":          {`"zip-decoder", "settings": {"max_ratio": 200}`, archiveOf(t, map[string]string{"a": zeros}), "200 times"},
		"zip, a lie":          {`"zip-decoder", "settings": {"max_bytes": 1000000}`, string(lies), ""},
		"zip, entries":        {`"zip-decoder", "settings": {"max_entries": 19}`, archiveOf(t, many), "19 entries"},
		"zip, packed bytes":   {`"zip-decoder", "settings": {"max_packed_bytes": 100}`, archiveOf(t, many), "100 bytes"},
		"MIME, bytes":         {`"mime-decoder", "settings": {"max_packed_bytes": 100}`, entityOf(order), "100 bytes"},
		"MIME, parts":         {`"mime-decoder"`, "--b\r\n" + strings.Repeat("Content-Type: text/plain\r\n\r\nx\r\n--b\r\n", 5000), "TOO_MANY_PARTS"},
		"MIME, within others": {`"mime-decoder"`, nested(1000), "truncated"},
	} {
		_, err := run(t, receive(t, `{"decode": [{"component": `+c.component+`}]}`), body(c.content))
		if err == nil {
			t.Errorf("%s: it was taken", name)
			continue
		}
		requireFailure(t, err, "receive.", c.want)
	}
}

// nested is a body of MIME with multiparts within one another.
func nested(deep int) string {
	var b strings.Builder
	for n := range deep {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", n, n)
	}
	return b.String() + "Content-Type: text/plain\r\n\r\nx\r\n"
}

func TestAPartOfMIMEBecomesTheBody(t *testing.T) {
	t.Parallel()
	p := receive(t, `{"decode": [{"component": "mime-decoder", "settings": {"part": "*/xml"}}], "disassemble": [{"component": "xml-disassembler"}]}`)
	whole := entityOf(order)
	_, bare, _ := strings.Cut(whole, "\r\n\r\n")
	for name, content := range map[string]string{"with a header": whole, "as HTTP sends it": bare} {
		c, err := run(t, p, body(content))
		if err != nil || c.bodies() != order || c.good[0].Promoted["SourceFileName"] != "order.xml" {
			t.Errorf("%s: it gives %q, %v", name, c.bodies(), err)
		}
	}
	for want, broken := range map[string]string{
		"no MIME": order, "none is */xml": "Content-Type: text/plain\r\n\r\nx", "": whole[:len(whole)-20],
	} {
		_, err := run(t, p, body(broken))
		requireFailure(t, err, "receive.", want)
	}
}

// Each decoder unpacks the bodies that its encoder has packed, of each length around the lines of base64.
func TestWhatIsPackedIsUnpacked(t *testing.T) {
	t.Parallel()
	for out, in := range map[string]string{
		`{"component": "zip-encoder", "settings": {"entry": "a.bin"}}`:                 `{"component": "zip-decoder"}`,
		`{"component": "mime-encoder", "settings": {"name": "a b.bin"}}`:               `{"component": "mime-decoder"}`,
		`{"component": "mime-encoder", "settings": {"name": "ä.bin", "header": true}}`: `{"component": "mime-decoder", "settings": {"name": "ä*"}}`,
	} {
		in = strings.Replace(in, `"zip-decoder"}`, `"zip-decoder", "settings": {"max_ratio": 2000}}`, 1)
		encode, decode := send(t, `{"encode": [`+out+`]}`), receive(t, `{"decode": [`+in+`]}`)
		for _, length := range []int{0, 1, 2, 3, 56, 57, 58, 114, 100_000} {
			content := strings.Repeat("\x00\xff\r\n--", length/6+1)[:length]
			packed, _, err := made(t, encode, body(content))
			if err != nil {
				t.Fatal(err)
			}
			c, err := run(t, decode, body(packed))
			if err != nil || c.bodies() != content {
				t.Errorf("%s: %d bytes became %d, %v", out, length, len(c.bodies()), err)
			}
		}
	}
}
