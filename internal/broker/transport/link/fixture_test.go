package link

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a transport.Deliverer that remembers what came. It answers each run with the number after it, so that an answer shows
// what it answers.
type receiver struct {
	mu        sync.Mutex
	batches   []transport.Batch
	fragments []transportstore.Fragment
	passages  []transport.Passage
	open      int
	openMost  int
	came      chan struct{} // has room for many
	hold      func(ctx context.Context, batch transport.Batch) error
	holdPart  func(ctx context.Context, fragment transportstore.Fragment) error
	outcome   transportstore.Outcome
}

func newReceiver() *receiver {
	return &receiver{came: make(chan struct{}, 1<<16), outcome: transportstore.Accepted}
}

func (r *receiver) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	r.mu.Lock()
	r.batches = append(r.batches, batch)
	r.open++
	r.openMost = max(r.openMost, r.open)
	r.mu.Unlock()
	r.came <- struct{}{}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open--
	}()
	if r.hold != nil {
		if err := r.hold(ctx, batch); err != nil {
			return nil, err
		}
	}
	results := make([]transportstore.Result, len(batch.Runs))
	for i, run := range batch.Runs {
		results[i] = transportstore.Result{Outcome: r.outcome, Next: run.FirstSequence + int64(len(run.Bodies)), Broker: run.ToBroker, Epoch: 7}
	}
	return results, nil
}

func (r *receiver) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	r.mu.Lock()
	r.fragments = append(r.fragments, fragment)
	r.passages = append(r.passages, passage)
	r.mu.Unlock()
	r.came <- struct{}{}
	if r.holdPart != nil {
		if err := r.holdPart(ctx, fragment); err != nil {
			return 0, err
		}
	}
	return fragment.Offset + int64(len(fragment.Data)), nil
}

// deliveries returns how many batches have come.
func (r *receiver) deliveries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.batches)
}

// awaitReleased is for what a test holds back in a receiver: it ends at the end of the test at the latest, whether that has failed or not,
// since a server that closes may wait for it.
func awaitReleased(t *testing.T, released <-chan struct{}) {
	t.Helper()
	select {
	case <-released:
	case <-t.Context().Done():
	}
}

func plaintext() Config { return Config{Plaintext: true} }

// serve runs a server on a socket of its own until the test ends.
func serve(t *testing.T, deliverer transport.Deliverer, config Config) (*Server, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, deliverer, config), listener.Addr().String()
}

func serveOn(t *testing.T, listener net.Listener, deliverer transport.Deliverer, config Config) *Server {
	t.Helper()
	server, err := NewServer(deliverer, config)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %s", err)
		}
	})
	return server
}

// connect makes a link that is closed when the test ends.
func connect(t *testing.T, address string, config Config) *Link {
	t.Helper()
	l, err := New(address, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// only is the state of the connection of a link; nothing when there is none.
func only(l *Link) ConnectionState {
	if states := l.Connections(); len(states) > 0 {
		return states[0]
	}
	return ConnectionState{}
}

func speaker() transportstore.Speaker {
	return transportstore.Speaker{Instance: parley.UUID{1}, Epoch: 2, Term: 3, Token: parley.UUID{4}}
}

// run makes a run of one conversation, beginning at a number.
func run(conversation byte, first int64, bodies ...string) transportstore.Run {
	r := transportstore.Run{
		ConversationID: parley.UUID{0xC0, conversation},
		FromInitiator:  true,
		FirstSequence:  first,
		MessageType:    "DEFAULT",
		FromService:    "orders",
		ToService:      "stock",
		Contract:       "DEFAULT",
		ToBroker:       parley.UUID{0xB0},
		Priority:       5,
		EnqueuedAt:     time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
	}
	for _, body := range bodies {
		r.Bodies = append(r.Bodies, []byte(body))
	}
	return r
}

func batch(runs ...transportstore.Run) transport.Batch {
	return transport.Batch{Speaker: speaker(), Passage: transport.Outset(), Runs: runs}
}

// deliver asks that a batch is accepted as it stands.
func deliver(t *testing.T, l *Link, b transport.Batch) {
	t.Helper()
	results, err := l.Deliver(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	checkResults(t, b, results)
}

func checkResults(t *testing.T, b transport.Batch, results []transportstore.Result) {
	t.Helper()
	if len(results) != len(b.Runs) {
		t.Fatalf("%d results for %d runs", len(results), len(b.Runs))
	}
	for i, result := range results {
		want := transportstore.Result{
			Outcome: transportstore.Accepted, Next: b.Runs[i].FirstSequence + int64(len(b.Runs[i].Bodies)), Broker: b.Runs[i].ToBroker, Epoch: 7,
		}
		if !reflect.DeepEqual(result, want) {
			t.Errorf("result %d is %+v, want %+v", i, result, want)
		}
	}
}

// wantFailure asks for an error with a number.
func wantFailure(t *testing.T, err error, numbers ...int) {
	t.Helper()
	failure := (*transport.TransmissionError)(nil)
	if !errors.As(err, &failure) {
		t.Fatalf("error %v, want a failure with one of the numbers %d", err, numbers)
	}
	if !slices.Contains(numbers, failure.Number) {
		t.Fatalf("error %v, want one of the numbers %d", err, numbers)
	}
}

// eventually waits for what other goroutines bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(3 * time.Minute) // a slow machine needs a small part of it
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// certify makes a certificate that signs itself.
func certify(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// believing makes the settings of an end that shows own and believes others.
func believing(own tls.Certificate, others ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	for _, other := range others {
		pool.AddCert(other.Leaf)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}
