package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/parleytest"
)

func TestTheFingerprintOfThePeerComesWithWhatItSends(t *testing.T) {
	t.Parallel()
	ours, theirs := certify(t, "ours"), certify(t, "theirs")
	far := newReceiver()
	server, address := serve(t, far, Config{TLS: believing(theirs, ours)})
	l := connect(t, address, Config{TLS: believing(ours, theirs)})
	deliver(t, l, batch(run(1, 0, "a")))
	if got := far.batches[0].Identity; got != Fingerprint(ours.Leaf) {
		t.Errorf("identity %q, want %q", got, Fingerprint(ours.Leaf))
	}
	// An authority vouches for its name.
	if got := far.batches[0].Name; got != "ours" {
		t.Errorf("name %q", got)
	}
	for _, state := range append(server.Connections(), l.Connections()...) {
		if state.State != LoggedIn || state.AuthenticationMethod != "CERTIFICATE" || state.EncryptionAlgorithm == "NONE" {
			t.Errorf("connection %+v", state)
		}
	}
}

// Without an authority a name proves nothing: any may be written into a certificate.
func TestNameInACertificateComesOnlyWhereAnAuthorityVouchesForIt(t *testing.T) {
	t.Parallel()
	leaf := certify(t, "ours").Leaf
	shown := []*x509.Certificate{leaf}
	named := &x509.Certificate{Subject: pkix.Name{CommonName: "a\x00b\xff"}}
	for _, c := range []struct {
		state *tls.ConnectionState
		want  string
	}{
		{nil, ""},
		{&tls.ConnectionState{PeerCertificates: shown}, ""},
		{&tls.ConnectionState{PeerCertificates: shown, VerifiedChains: [][]*x509.Certificate{shown}}, "ours"},
		{&tls.ConnectionState{PeerCertificates: []*x509.Certificate{named}, VerifiedChains: [][]*x509.Certificate{{named}}}, "a\uFFFDb\uFFFD"},
	} {
		if got := vouchedName(c.state); got != c.want {
			t.Errorf("named %q, want %q", got, c.want)
		}
	}
}

func TestACertificateThatNobodyBelievesDeliversNothing(t *testing.T) {
	t.Parallel()
	ours, theirs, other := certify(t, "ours"), certify(t, "theirs"), certify(t, "other")
	far := newReceiver()
	server, address := serve(t, far, Config{TLS: believing(theirs, ours)})
	for name, config := range map[string]Config{
		"of the client": {TLS: believing(other, theirs)},
		"of the server": {TLS: believing(ours, other)},
	} {
		_, err := connect(t, address, config).Deliver(t.Context(), batch(run(1, 0, "a")))
		t.Logf("%s: %v", name, err)
		wantFailure(t, err, transport.FailureToAuthenticate)
	}
	eventually(t, "both are counted as rejected", func() bool { return server.Counters().Rejected == 2 })
	if n := far.deliveries(); n != 0 {
		t.Errorf("%d batches were delivered", n)
	}
}

func TestALinkWithoutTLSMustBeAskedFor(t *testing.T) {
	t.Parallel()
	if _, err := New("tcp://127.0.0.1:1", Config{}); err == nil {
		t.Error("a link without TLS was made unasked")
	}
	if _, err := NewServer(newReceiver(), Config{}); err == nil {
		t.Error("a server without TLS was made unasked")
	}
	theirs := certify(t, "theirs")
	bare := believing(theirs, theirs)
	bare.Certificates = nil
	_, address := serve(t, newReceiver(), Config{TLS: believing(theirs, theirs)})
	_, err := connect(t, address, Config{TLS: bare}).Deliver(t.Context(), batch(run(1, 0, "a")))
	wantFailure(t, err, transport.FailureToAuthenticate)
}

// doorman takes each connection for itself.
type doorman struct{ taken chan net.Conn }

func (d doorman) Connect(context.Context, net.Conn, string) (net.Conn, tls.ConnectionState, error) {
	return nil, tls.ConnectionState{}, io.EOF
}

func (d doorman) Accept(_ context.Context, raw net.Conn) (net.Conn, tls.ConnectionState, error) {
	d.taken <- raw
	return nil, tls.ConnectionState{}, credentials.ErrConnDispatched
}

// A pairing with this server may take longer than a peer may be silent.
func TestAConnectionThatIsHandedOverMayBeSilent(t *testing.T) {
	t.Parallel()
	guard := doorman{taken: make(chan net.Conn, 1)}
	server, address := serve(t, newReceiver(), Config{Security: guard, DeadAfter: deadAfterLeast})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	taken := parleytest.Receive(t, guard.taken, "the connection")
	defer taken.Close()
	read := make(chan error, 1)
	begun := time.Now()
	go func() {
		_, err := taken.Read(make([]byte, 1))
		read <- err
	}()
	eventually(t, "a peer would be dead", func() bool { return time.Since(begun) > deadAfterLeast+deadAfterLeast/3 })
	if _, err := conn.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := parleytest.Receive(t, read, "what was written"); err != nil {
		t.Error(err)
	}
	if err := taken.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := taken.Read(make([]byte, 1)); err == nil {
		t.Error("a deadline of the new owner does not count")
	}
	if c := server.Counters(); c.Rejected != 0 {
		t.Errorf("counters %+v", c)
	}
}
