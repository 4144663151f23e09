package send_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// A host gets the line that ends a message behind all of it, and never behind a part: what ends early, is longer than it should be, cannot
// be read, or is no longer ours ends with the connection.
func TestAHostGetsAWholeMessageOrNoEnd(t *testing.T) {
	t.Parallel()
	const text = "Subject: x\r\n\r\nbody\r\n"
	for name, c := range map[string]struct {
		size    int
		rest    io.Reader // what the body has behind the text
		confirm error
		says    string
	}{
		"ends early":    {len(text) + 1, strings.NewReader(""), nil, "4.4.2 read the message: it ended after 20 of 21 bytes"},
		"is longer":     {len(text) - 1, strings.NewReader(""), nil, "4.4.2 read the message: it ended after 20 of 19 bytes"},
		"is unreadable": {len(text), failing{}, nil, "4.4.2 read the message: gone"},
		"is ours no more": {
			len(text), strings.NewReader(""), errors.New("the lease is over"),
			"4.3.2 the message was not sent to its end: the lease is over",
		},
	} {
		for _, lmtp := range []bool{false, true} {
			h := &host{lmtp: lmtp, extensions: []string{"8BITMIME", "SMTPUTF8"}}
			connection, err := open(t, h, nil)
			if err != nil {
				t.Fatal(err)
			}
			message := letter(text, "a@b.example")
			message.Size = int64(c.size)
			message.Open = func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader(text), c.rest)), nil
			}
			message.Confirm = func(context.Context) error { return c.confirm }
			result := connection.Send(context.Background(), message)[0]
			if got := result.Enhanced + " " + result.Text; !strings.HasPrefix(got, c.says) || result.Class != 0 || result.HostFailed {
				t.Errorf("one that %s: %+v", name, result)
			}
			if connection.Usable() {
				t.Errorf("one that %s: the connection goes on", name)
			}
			connection.Close()
			if messages, _ := h.received(); len(messages) > 0 {
				t.Errorf("one that %s: the host took %q", name, messages)
			}
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("gone") }
