package server // Messages that leave are not exported.

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// taking is a way that takes everything.
type taking struct {
	got        string
	size       int64 // as it was said
	isSevenBit bool
}

func (w *taking) Send(ctx context.Context, sent send.Message) []send.Result {
	body, err := sent.Open(ctx)
	if err != nil {
		return []send.Result{{Text: err.Error()}}
	}
	text, _ := io.ReadAll(body)
	w.got, w.size = string(text), sent.Size
	return []send.Result{{Class: send.Delivered}}
}
func (w *taking) Usable() bool                 { return true }
func (w *taking) Messages() int                { return 1 }
func (w *taking) Offers(extension string) bool { return !w.isSevenBit || extension != "8BITMIME" }
func (w *taking) Ends() send.Ends              { return send.Ends{} }
func (w *taking) Close()                       {}

// A header that a connector may be set to take leaves. One that is longer fails: it would wait until the message expires.
func TestAMessageLeavesWithTheLongestHeaderThatWasTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header int
		want   send.Result
	}{
		"of 8 MB":                   {8 << 20, send.Result{Class: send.Delivered}},
		"longer than is ever taken": {66 << 20, send.Result{Class: send.Failed, Enhanced: "5.3.4"}},
	} {
		text := "X-Parley-Organization-A: ours\r\nSubject: x" + strings.Repeat("\r\n "+strings.Repeat("x", 997), c.header/1000) + "\r\n\r\nbody"
		way := new(taking)
		results := leavingWay{Way: way}.Send(t.Context(), send.Message{
			Recipients: make([]send.Recipient, 1), Size: int64(len(text)),
			Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		})
		results[0].Text = ""
		if results[0] != c.want {
			t.Errorf("a header %s: %+v", name, results[0])
		}
		if _, left, _ := strings.Cut(text, "\r\n"); c.want.Class == send.Delivered && way.got != left {
			t.Errorf("a header %s left as %.60q", name, way.got)
		}
	}
}
