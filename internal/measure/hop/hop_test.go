package hop_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/hop"
)

// An engine that passes on what comes, and does not acknowledge before its target did.
func TestEveryBodyThatIsAcknowledgedReachesTheBackEnd(t *testing.T) {
	var mu sync.Mutex
	got := make(map[string]int)
	back, err := hop.Listen(t.Context(), hop.Lengths{}, func(body []byte) {
		mu.Lock()
		defer mu.Unlock()
		got[string(body)]++
	})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	engine, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	go func() {
		for {
			from, err := engine.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(t.Context(), "tcp", back.Address())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to) }()
		}
	}()
	sent, err := hop.Generator{
		Address: engine.Addr().String(), Frames: hop.Lengths{}, Connections: 20,
		Body: func(number int64) []byte { return fmt.Appendf(nil, "<n>%d</n>", number) },
	}.Run(t.Context(), 1000, 0)
	if err != nil || sent.Messages != 1000 {
		t.Fatalf("the generator sent %d with %v", sent.Messages, err)
	}
	if err := back.Await(t.Context(), 1000, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1000 {
		t.Errorf("the back end has %d different bodies of 1000", len(got))
	}
	if err := back.Await(t.Context(), 1001, 10*time.Millisecond); err == nil {
		t.Error("the back end waited for a body that nobody sent, and gave no error")
	}
}
