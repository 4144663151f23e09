package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/flow/adapter"
)

// Destination is where a port sends messages to.
type Destination struct {
	Kind     adapter.Kind
	Endpoint adapter.Endpoint
	// Received gives the bodies that have arrived, in any order. A message that is sent again may be there once or twice.
	Received func() []string
}

// CheckSender holds the senders of an adapter to the rules.
func CheckSender(t *testing.T, d Destination) {
	t.Helper()
	made, err := d.Kind.NewSender(d.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	isClosed := false
	t.Cleanup(func() {
		if !isClosed {
			_ = made.Close()
		}
	})
	d.send(t, made, Message(1, "one"), Message(2, "two"), Message(3, "three"))
	d.require(t, "one", "three", "two")

	// A process that ended before it recorded a message sends it again.
	d.send(t, made, Message(2, "two"))
	d.require(t, "one", "three", "two")

	// A message whose body cannot be read fails alone, with its own failure.
	broken := Message(4, "four")
	refused := &adapter.Failure{Code: "send.pipeline", Permanent: true, Err: errors.New("the pipeline refuses it")}
	broken.Open = func(context.Context) (io.ReadCloser, error) { return nil, refused }
	deliveries := made.Send(t.Context(), []*adapter.Message{Message(5, "five"), broken, Message(6, "six")})
	if len(deliveries) != 3 || deliveries[0].Err != nil || !errors.Is(deliveries[1].Err, refused) || deliveries[2].Err != nil {
		t.Fatalf("a message that cannot be read, between two others, gives %+v", deliveries)
	}
	d.require(t, "five", "one", "six", "three", "two")

	// Nothing is said to be sent when the context had ended before.
	ended, end := context.WithCancel(t.Context())
	end()
	for _, delivery := range made.Send(ended, []*adapter.Message{Message(7, "seven")}) {
		if delivery.Err == nil && !slices.Contains(d.Received(), "seven") {
			t.Error("a message is said to be sent that did not arrive, since the context had ended")
		}
	}

	// Batches are sent side by side.
	var sending sync.WaitGroup
	for n := range 4 {
		sending.Go(func() {
			d.send(t, made, Message(int64(100+10*n), fmt.Sprintf("a%d", n)), Message(int64(101+10*n), fmt.Sprintf("b%d", n)))
		})
	}
	sending.Wait()
	d.require(t, "a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "five", "one", "six", "three", "two")
	isClosed = true
	if err := made.Close(); err != nil {
		t.Errorf("the sender is closed with the error %v", err)
	}
}

// Message makes a message with a body.
func Message(id int64, body string) *adapter.Message {
	return &adapter.Message{
		ID: id, Interchange: id, ReceivedAt: time.Now(), Size: int64(len(body)), Type: "urn:test#Message", ContentType: "text/plain",
		Promoted: map[string]string{}, Written: map[string]string{},
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

// Read reads the body of a message.
func Read(ctx context.Context, m *adapter.Message) (string, error) {
	opened, err := m.Open(ctx)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(opened)
	return string(body), errors.Join(err, opened.Close())
}

func (d Destination) send(t *testing.T, made adapter.Sender, messages ...*adapter.Message) {
	t.Helper()
	deliveries := made.Send(t.Context(), messages)
	if len(deliveries) != len(messages) {
		t.Errorf("%d messages have %d outcomes", len(messages), len(deliveries))
		return
	}
	for i, m := range messages {
		if err := deliveries[i].Err; err != nil {
			t.Errorf("message %d is not sent: %v", m.ID, err)
		}
	}
}

// require waits until bodies have arrived, each once at least, and no others but "seven", of which nothing was said.
func (d Destination) require(t *testing.T, want ...string) {
	t.Helper()
	has := func() []string {
		got := slices.DeleteFunc(slices.Clone(d.Received()), func(body string) bool { return body == "seven" })
		slices.Sort(got)
		return slices.Compact(got)
	}
	until(t, fmt.Sprintf("%d messages have arrived", len(want)), func() bool { return len(has()) >= len(want) })
	if got := has(); !slices.Equal(got, want) {
		t.Fatalf("there are %q, and not %q", got, want)
	}
}
