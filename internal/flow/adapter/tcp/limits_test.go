package tcp

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"max_connections": 1}`)
	first := s.client(t)
	first.send(1, "", "x")
	first.answer()
	second := s.client(t)
	if a := second.answer(); a.status != notTaken || a.id != 0 {
		t.Errorf("the answer is %+v", a)
	}
	second.isClosed()
	_ = first.Close()
	for deadline := time.Now().Add(adaptertest.Patience); time.Now().Before(deadline); {
		third := s.client(t)
		third.send(2, "", "y")
		if a := third.answer(); a.status == published {
			return
		}
	}
	t.Error("no connection was taken after the first was closed")
}

func TestAnIdleConnectionIsClosedAndOneThatWaitsIsNot(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"idle_timeout": "50 milliseconds", "frame_timeout": "50 milliseconds"}`)
	s.client(t).isClosed()
	half := s.client(t)
	half.write("\x00\x00\x00\x20half")
	half.isClosed()
	let := make(chan error)
	s.Refuse = func([]adapter.Input) error { return <-let }
	waiting := s.client(t)
	waiting.send(1, "", "x")
	time.AfterFunc(200*time.Millisecond, func() { close(let) })
	if a := waiting.answer(); a.status != published {
		t.Errorf("the answer is %+v", a)
	}
	waiting.isClosed()
}

// A client that has closed its side, and a location that stops, wait for the answers to what was sent.
func TestWhatWasReadIsAnswered(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *server, c *client) error{
		"the client has closed its side": func(_ *server, c *client) error { return c.Conn.(*net.TCPConn).CloseWrite() },
		"the location stops":             func(s *server, _ *client) error { go s.stop(); return nil },
	} {
		s := newServer(t, `{}`)
		let, begun := make(chan error), make(chan bool, 10)
		s.Refuse = func([]adapter.Input) error { begun <- true; return <-let }
		c := s.client(t)
		c.send(1, "", "x")
		<-begun
		if err := end(s, c); err != nil {
			t.Fatal(name, err)
		}
		time.AfterFunc(50*time.Millisecond, func() { close(let) })
		if a := c.answer(); a.status != published || a.id != 1 {
			t.Errorf("%s: the answer is %+v", name, a)
		}
		c.isClosed()
	}
}

func TestFramesWaitWhileIntakeIsThrottled(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	s.Throttle(true)
	c := s.client(t)
	c.send(1, "", "x")
	time.AfterFunc(50*time.Millisecond, func() {
		if len(s.Bodies()) != 0 {
			t.Error("a frame was taken while intake was throttled")
		}
		s.Throttle(false)
	})
	if a := c.answer(); a.status != published {
		t.Errorf("the answer is %+v", a)
	}
}

func TestPlainFramesAndLinesAreTakenWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for framing, text := range map[string]string{
		"plain": "\x00\x03one\x00\x00\x00\x05two\r\n",
		"line":  "one\r\n\ntwo",
	} {
		s := newServer(t, fmt.Sprintf(`{"framing": %q, "prefix_bytes": 2, "max_size": 1000}`, framing))
		isAway := true
		s.Refuse = func([]adapter.Input) error {
			defer func() { isAway = false }()
			if isAway { // whoever is not answered does not repeat
				return errors.New("the database is away")
			}
			return nil
		}
		c := s.client(t)
		c.write(text)
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.isClosed()
		want := []string{"one", "two"}
		if framing == "plain" {
			want = []string{"one", "", "two\r\n"}
		}
		if got := s.Bodies(); !slices.Equal(got, want) {
			t.Errorf("%s: taken are %q", framing, got)
		}
	}
}

func TestALineThatIsTooLongEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"framing": "line", "max_size": 100000}`)
	c := s.client(t)
	c.write(strings.Repeat("x", 100_000) + "\n" + strings.Repeat("x", 100_001) + "\nlost\n")
	c.isClosed()
	if got := s.Bodies(); len(got) != 1 || len(got[0]) != 100_000 {
		t.Errorf("%d are taken", len(got))
	}
}
