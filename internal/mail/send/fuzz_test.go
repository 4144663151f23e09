package send

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// whole reads message data as a host does.
func whole(data []byte) (body []byte, rest []byte, isEnded bool) {
	lines := append([]byte("\r\n"), data...)
	end := bytes.Index(lines, []byte("\r\n.\r\n"))
	if end < 0 {
		return nil, nil, false
	}
	return bytes.ReplaceAll(lines[:end+2], []byte("\r\n."), []byte("\r\n"))[2:], lines[end+5:], true
}

func FuzzReply(f *testing.F) {
	for _, text := range []string{"250 2.1.0 Ok\r\n", "250-a\r\n250-SIZE 1\r\n250 b\r\n", "421\r\n", "5501 x\r\n", "250-a\r\n550 b\r\n", "250 \xff\x00\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		answered, err := readReply(bufio.NewReaderSize(bytes.NewReader(text), maximumReplyLine))
		if err != nil {
			return
		}
		if answered.code < 200 || answered.code > 599 || len(answered.lines) > maximumReplyLines {
			t.Errorf("%q is read as %+v", text, answered)
		}
		result := resultOf("host.example", answered)
		if !utf8.ValidString(result.Text) || strings.ContainsAny(result.Text, "\r\n\x00") || len(result.Text) > maximumText ||
			int(result.Enhanced[0]-'0') != answered.code/100 {
			t.Errorf("%q means %+v", text, result)
		}
	})
}

// recorded is a connection that keeps what is written to it.
type recorded struct {
	net.Conn
	bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error)   { return r.Buffer.Write(p) }
func (r *recorded) Read([]byte) (int, error)      { return 0, io.EOF }
func (r *recorded) SetDeadline(_ time.Time) error { return nil }
func (r *recorded) Close() error                  { return nil }

// pieces reads a body so many bytes at a time.
type pieces struct {
	text []byte
	size int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(into[:min(len(into), p.size)], p.text)
	p.text = p.text[n:]
	return n, nil
}

// A body arrives as it is, and nothing of it ends the message early, wherever it is cut into pieces.
func FuzzBody(f *testing.F) {
	f.Add([]byte("..a\r\n.\r\n\r\n.b\r\n"), 3)
	f.Add([]byte("a\n.\nb\r.\r"), 1)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		conn := new(recorded)
		c := &Connection{}
		c.use(conn)
		end, err := c.writeBody(&pieces{text, max(1, size)}, int64(len(text)))
		if err == nil {
			err = c.endBody(end)
		}
		if err != nil {
			t.Fatal(err)
		}
		body, rest, isEnded := whole(conn.Bytes())
		if !isEnded || len(rest) > 0 {
			t.Errorf("%q ends early: %q is left", text, rest)
		}
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\r\n")) {
			text = append(text, "\r\n"...)
		}
		// A dot behind an LF alone is doubled for those who take that for a line end.
		if bytes.Count(text, []byte("\n")) == bytes.Count(text, []byte("\r\n")) && !bytes.Equal(body, text) {
			t.Errorf("%q arrives as %q", text, body)
		}
	})
}

// A host that answers anything at all gets each recipient a result, and the connection an end.
func FuzzHost(f *testing.F) {
	for _, text := range []string{
		"220 x\r\n250 x\r\n250 a\r\n250 b\r\n550 c\r\n354 d\r\n250 e\r\n", "220 x\r\n250-x\r\n250-PIPELINING\r\n250-SIZE 10\r\n250 DSN\r\n421 bye\r\n",
		"220 x\r\n250-x\r\n250 STARTTLS\r\n220 go\r\n", "554 no\r\n", "220-\r\n", "220 x\r\n502 x\r\n250 x\r\n250 a\r\n452 b\r\n250 c\r\n354 d\r\n452 e\r\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, isLMTP bool) {
		near, far := net.Pipe()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, far) }()
			_, _ = far.Write(text)
			_ = far.Close()
		}()
		defer near.Close()
		c := &Connection{target: Target{Host: "host.example", Hello: "client.example", LMTP: isLMTP}}
		c.use(near)
		if greeting, err := c.read(time.Second); err != nil || greeting.code != 220 || c.hello() != nil {
			return
		}
		message := Message{
			Sender: "a@a.example", Size: 5, Recipients: []Recipient{{Address: "b@b.example"}, {Address: "c@b.example", Notify: "NEVER"}},
			Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil },
		}
		results := c.Send(context.Background(), message)
		if len(results) != 2 {
			t.Fatalf("%q: %+v", text, results)
		}
		for _, result := range results {
			if result.Class == Delivered && result.Code/100 != 2 || result.Class == Failed && result.Code/100 != 5 && result.Code != 0 {
				t.Errorf("%q: %+v", text, result)
			}
		}
	})
}
