package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

func message(id int64, body string) *adapter.Message {
	return &adapter.Message{
		ID: id, ReceivedAt: time.Now(), Size: int64(len(body)), Promoted: map[string]string{"SourceFileName": "../in.xml"},
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

// send sends messages, and gives an outcome for each.
func send(t *testing.T, s *sender, messages ...*adapter.Message) []string {
	t.Helper()
	var outcomes []string
	for _, d := range s.Send(t.Context(), messages) {
		f, is := errors.AsType[*adapter.Failure](d.Err)
		switch {
		case d.Err == nil:
			outcomes = append(outcomes, "sent")
		case !is:
			outcomes = append(outcomes, d.Err.Error())
		case f.Unreachable:
			outcomes = append(outcomes, f.Code+", unreachable")
		default:
			outcomes = append(outcomes, f.Code)
		}
	}
	return outcomes
}

func TestAMessageBecomesAFileOfAServerOnce(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		s := r.sender(t, "%MessageID%-%SourceFileName%", `{}`)
		want(t, "first", send(t, s, message(1, "one"), message(2, "two")), []string{"sent", "sent"})
		want(t, "repeated", send(t, s, message(1, "one"), message(2, "other")), []string{"sent", "send.refused"})
		want(t, "files", r.files(t, "."), []string{"1-.._in.xml=one", "2-.._in.xml=two"})

		o := r.sender(t, "newest.xml", `{"mode": "overwrite"}`)
		want(t, "overwritten", append(send(t, o, message(3, "old")), send(t, o, message(4, "new"))...), []string{"sent", "sent"})
		c := r.sender(t, "newest.xml", `{}`)
		want(t, "created", send(t, c, message(5, "newer")), []string{"send.refused"})
		want(t, "files", r.files(t, "."), []string{"1-.._in.xml=one", "2-.._in.xml=two", "newest.xml=new"})
	})
}

func TestATransferThatWasCutOffGoesOnWhereItWas(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		const size = 8 << 20
		body := strings.Repeat("0123456789abcdef", size/16)
		s := r.sender(t, "%MessageID%", `{}`)
		want(t, "warm", send(t, s, message(1, "x")), []string{"sent"})
		r.relay.left.Store(size * 3 / 4)
		want(t, "cut", send(t, s, message(2, body)), []string{"send.unreachable, unreachable"})
		r.relay.left.Store(-1)
		before := r.relay.sent.Load()
		want(t, "again", send(t, s, message(2, body)), []string{"sent"})
		if sent := r.relay.sent.Load() - before; sent > size/2 {
			t.Errorf("%d bytes were sent again of %d, of which three quarters had been sent", sent, size)
		}
		got, err := os.ReadFile(filepath.Join(r.folder, "2"))
		if err != nil || string(got) != body {
			t.Errorf("the file has %d bytes and not those of the message, %v", len(got), err)
		}

		r.relay.left.Store(size * 3 / 4)
		want(t, "cut", send(t, s, message(3, body)), []string{"send.unreachable, unreachable"})
		r.relay.left.Store(-1)
		other := strings.ToUpper(body[:size/2])
		want(t, "another body", send(t, s, message(3, other)), []string{"sent"})
		if got, err := os.ReadFile(filepath.Join(r.folder, "3")); err != nil || string(got) != other {
			t.Errorf("two bodies were mixed in a file of %d bytes, %v", len(got), err)
		}
	})
}

func TestAServerThatCannotBeTrustedOrReachedLetsThePortWait(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		const away = "send.unreachable, unreachable"
		want(t, "no folder", send(t, r.sender(t, "none/%MessageID%", `{}`), message(1, "x")), []string{away})
		other := newDouble(t)
		e := r.endpoint("%MessageID%", fmt.Sprintf(`{"host_key": [%q]}`, strings.TrimSpace(other.hostKey)))
		made, err := newSender(e)
		if err != nil {
			t.Fatal(err)
		}
		d := made.Send(t.Context(), []*adapter.Message{message(2, "x")})
		if d[0].Err == nil || !strings.Contains(d[0].Err.Error(), "SHA256:") {
			t.Errorf("a server with another key is %v", d[0].Err)
		}
		r.key = other.key
		want(t, "another key of the user", send(t, r.sender(t, "%MessageID%", `{}`), message(3, "x")), []string{away})
		want(t, "files", r.files(t, "."), []string{})
	})
}

func TestACallThatIsNotAnsweredEnds(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		s := r.sender(t, "%MessageID%", `{"timeout": "1 second"}`)
		want(t, "first", send(t, s, message(1, "x")), []string{"sent"})
		r.relay.isStill.Store(true)
		began := time.Now()
		want(t, "silence", send(t, s, message(2, "x")), []string{"send.unreachable, unreachable"})
		if took := time.Since(began); took < time.Second {
			t.Errorf("a silent server was waited for %s", took)
		}
		r.relay.isStill.Store(false)
		want(t, "again", send(t, s, message(2, "x")), []string{"sent"})
	})
}

func TestLogsInWithAPasswordAndAFingerprint(t *testing.T) {
	t.Parallel()
	r := newDouble(t)
	key, err := readHostKey(r.hostKey)
	if err != nil {
		t.Fatal(err)
	}
	for given, wanted := range map[string]string{password: "sent", "wrong": "send.unreachable, unreachable"} {
		e := r.endpoint("%MessageID%", fmt.Sprintf(`{"host_key": [%q]}`, fingerprint(key)))
		e.Secret = func(_ context.Context, name string) (string, bool, error) { return given, name == passwordSecret, nil }
		made, err := newSender(e)
		if err != nil {
			t.Fatal(err)
		}
		want(t, given, send(t, made.(*sender), message(1, "x")), []string{wanted})
		_ = made.Close()
	}
}
