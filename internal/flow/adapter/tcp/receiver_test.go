package tcp

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

var everywhere = adapter.Permission{Listen: []string{"127.0.0.1:*"}, Connect: []string{"127.0.0.1:*", "localhost:*"}}

// server is a location of tests that listens.
type server struct {
	*adaptertest.Intake
	address string
	stop    func() // and waits until it has stopped
}

func serve(t testing.TB, in adapter.Intake, settings string, secrets map[string]string) (address string, stop func()) {
	t.Helper()
	made, err := newReceiver(adapter.Endpoint{
		Name: "Orders", Address: "127.0.0.1:0", Settings: json.RawMessage(settings), Permission: everywhere,
		Logger: slog.New(slog.DiscardHandler), Secret: secretsOf(secrets),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := made.(*receiver)
	opened := make(chan net.Addr, 1)
	r.opened = func(at net.Addr) { opened <- at }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, in) }()
	select {
	case at := <-opened:
		address = at.String()
	case err := <-done:
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return address, stop
}

func secretsOf(values map[string]string) func(context.Context, string) (string, bool, error) {
	return func(_ context.Context, name string) (string, bool, error) {
		value, found := values[name]
		return value, found, nil
	}
}

func newServer(t *testing.T, settings string) *server {
	t.Helper()
	s := &server{Intake: &adaptertest.Intake{}}
	s.address, s.stop = serve(t, s.Intake, settings, nil)
	return s
}

// client is a program that speaks the protocol by itself.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (s *server) client(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(adaptertest.Patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) send(id uint64, key, body string) {
	c.t.Helper()
	c.write(string(appendRequest(nil, 4, request{id: id, key: key}, len(body))) + body)
}

func (c *client) answer() answer {
	c.t.Helper()
	length, err := readLength(c.in, 4)
	if err != nil {
		c.t.Fatal(err)
	}
	bytes, err := readBytes(c.in, int(length))
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := parseAnswer(bytes)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// isClosed waits until the server has closed the connection.
func (c *client) isClosed() {
	c.t.Helper()
	if _, err := io.Copy(io.Discard, c.in); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			c.t.Error("the server has not closed the connection")
		}
	}
}

// The bytes that the page of adapters shows, as a program writes and reads them.
func TestBytesAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/flow/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```text\n00 00 00 0d")
	block, _, _ = strings.Cut("00 00 00 0d"+block, "\n```")
	var shown [3]string
	for n, line := range strings.Split(block, "\n") {
		bytes, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		shown[n] = string(bytes)
	}
	s := newServer(t, `{}`)
	c := s.client(t)
	c.write(shown[0])
	answer := make([]byte, len(shown[1]))
	if _, err := io.ReadFull(c.in, answer); err != nil || string(answer) != shown[1] {
		t.Errorf("the answer is %x and not %x, %v", answer, shown[1], err)
	}
	c.write(shown[2])
	if a := c.answer(); a.status != published || a.id != 8 || a.message != 2 {
		t.Errorf("the answer is %+v", a)
	}
	if bodies := s.Bodies(); !slices.Equal(bodies, []string{"<a/>", "b"}) || s.Inputs()[1].Input.Key != "k1" {
		t.Errorf("taken are %q", bodies)
	}
}

func TestAMessageIsAcknowledgedWhenItIsStored(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	isAway := make(chan error, 1)
	s.Refuse = func([]adapter.Input) error { return <-isAway }
	c := s.client(t)
	c.send(1, "", "x")
	isAway <- errors.New("the database is away")
	if a := c.answer(); a.status != notTaken || a.id != 1 || strings.Contains(a.why, "database") {
		t.Errorf("the answer is %+v", a)
	}
	c.send(2, "", "x")
	isAway <- nil
	if a := c.answer(); a.status != published || a.id != 2 || a.message != 1 {
		t.Errorf("the answer is %+v", a)
	}
}

// A client repeats what was not acknowledged when its connection was lost.
func TestAKeyIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	for n := range 3 {
		c := s.client(t)
		c.send(9, "order 17", "x")
		if a := c.answer(); a.message != 1 || (a.status == repeated) != (n > 0) {
			t.Errorf("the answer is %+v", a)
		}
	}
	if len(s.Bodies()) != 1 {
		t.Errorf("taken are %q", s.Bodies())
	}
}

// The frames of a connection are taken in their order, while others are taken beside them.
func TestFramesOfAConnectionAreTakenInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"in_flight": 50, "batch_count": 7}`)
	var clients sync.WaitGroup
	const each = 500
	for n := range 6 {
		c := s.client(t)
		clients.Go(func() {
			for i := range each {
				c.send(uint64(i), "", fmt.Sprintf("%d %04d", n, i))
			}
		})
		clients.Go(func() {
			for i := range each {
				if a := c.answer(); a.id != uint64(i) || a.status != published {
					t.Errorf("answer %d is %+v", i, a)
				}
			}
		})
	}
	clients.Wait()
	bodies := s.Bodies()
	slices.SortStableFunc(bodies, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	if len(bodies) != 6*each || !slices.IsSorted(bodies) {
		t.Errorf("%d are taken, in another order", len(bodies))
	}
}

func TestNoMoreIsReadThanMayBeInFlight(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"in_flight": 3}`)
	begun, let := make(chan bool, 100), make(chan error)
	s.Refuse = func(inputs []adapter.Input) error {
		if len(inputs) > 3 {
			t.Errorf("%d are taken at once", len(inputs))
		}
		begun <- true
		return <-let
	}
	c := s.client(t)
	for n := range 20 {
		c.send(uint64(n), "", "x")
	}
	<-begun
	close(let)
	for range 20 {
		c.answer()
	}
}

func TestAFrameThatIsTooLargeIsRefusedAndTheNextIsTaken(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"max_size": 100}`)
	c := s.client(t)
	for id, size := range []int{101, 5000, 200_000, 100} {
		c.send(uint64(id), "", strings.Repeat("x", size))
		if a := c.answer(); a.id != uint64(id) || (a.status == refused) != (size > 100) {
			t.Errorf("%d bytes: the answer is %+v", size, a)
		}
	}
	c.send(7, "key", strings.Repeat("x", 101))
	if a := c.answer(); a.id != 7 || a.status != refused {
		t.Errorf("with a key: the answer is %+v", a)
	}
	c.write("\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00\x09")
	if a := c.answer(); a.id != 9 || a.status != refused {
		t.Errorf("4 GB: the answer is %+v", a)
	}
	c.isClosed()
}

func TestFramesThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	for name, frame := range map[string]string{
		"another kind":                 "\x03\x00\x00\x00\x00\x00\x00\x00\x05x",
		"no key":                       "\x02\x00\x00\x00\x00\x00\x00\x00\x05",
		"an empty key":                 "\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00x",
		"a key behind the end":         "\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x09x",
		"a key that is no text":        "\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x01\xffx",
		"a key with a character 0":     "\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x01\x00x",
		"a key that is longer than is": "\x02\x00\x00\x00\x00\x00\x00\x00\x05\x03\xe9" + strings.Repeat("k", 1001),
	} {
		c := s.client(t)
		c.write(string(appendLength(nil, 4, uint64(len(frame)))) + frame)
		if a := c.answer(); a.status != refused || a.id != 5 || a.why == "" {
			t.Errorf("%s: the answer is %+v", name, a)
		}
		c.send(6, "", "good")
		if a := c.answer(); a.status != published || a.id != 6 {
			t.Errorf("%s: the next answer is %+v", name, a)
		}
	}
	c := s.client(t)
	c.write("\x00\x00\x00\x02no")
	if a := c.answer(); a.status != refused {
		t.Errorf("a short frame: the answer is %+v", a)
	}
	c.isClosed()
}
