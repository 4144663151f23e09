package endpoint_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// tap is a socket in front of another one that keeps every byte that goes through, in either direction.
type tap struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	bytes  bytes.Buffer
	conns  []net.Conn
	copies sync.WaitGroup
}

// newTap puts a tap before tcp://host:port and gives its own address.
func newTap(t *testing.T, address string) (*tap, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{listener: listener, target: strings.TrimPrefix(address, "tcp://")}
	p.copies.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, conn := range p.conns {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.copies.Wait()
	})
	return p, "tcp://" + listener.Addr().String()
}

func (p *tap) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		p.copies.Go(func() { p.copy(out, in) })
		p.copies.Go(func() { p.copy(in, out) })
	}
}

func (p *tap) copy(to, from net.Conn) {
	_, _ = io.Copy(to, io.TeeReader(from, p))
	_ = to.Close()
}

func (p *tap) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes.Write(data)
}

func (p *tap) hasSeen(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.bytes.Bytes(), []byte(text))
}

// secured is the configuration of a daemon with a master key of its own, where links are encrypted or not.
func secured(t *testing.T, isLinkEncrypted bool) (*dialogsecurity.MasterKeys, func(*slog.Logger) dialogsecurity.Guard) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := dialogsecurity.CreateMasterKey(path); err != nil {
		t.Fatal(err)
	}
	keys, err := dialogsecurity.OpenMasterKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys, func(logger *slog.Logger) dialogsecurity.Guard {
		return dialogsecurity.New(dialogsecurity.Config{Keys: keys, IsLinkEncrypted: isLinkEncrypted, Logger: logger})
	}
}

// introduce makes a certificate for the owner of the services here, and installs it at another database under a role that stands for
// this one, whose name it gives.
func (b *base) introduce(keys *dialogsecurity.MasterKeys, other *base) (role string) {
	b.t.Helper()
	certificate, sealed, err := dialogsecurity.NewCertificate(keys, b.name, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		b.t.Fatal(err)
	}
	role = "far side of " + value[string](other, "select current_database()::text")
	other.exec("create role " + pgx.Identifier{role}.Sanitize())
	b.t.Cleanup(func() { _, _ = other.pool.Exec(context.Background(), "drop role "+pgx.Identifier{role}.Sanitize()) })
	for _, err := range []error{
		truststore.CreateCertificate(b.t.Context(), b.pool, truststore.NewCertificate{
			Name: "own", Bytes: certificate.Bytes, PrivateKey: sealed, IsActive: true,
		}),
		truststore.CreateCertificate(b.t.Context(), other.pool, truststore.NewCertificate{
			Name: "far", Owner: role, Bytes: certificate.Bytes, IsActive: true,
		}),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return role
}

// Two databases on two servers, and a third server between them that passes everything on. Its links are in clear here, so what goes
// through them is what it sees.
func TestForwarderNeverSeesABodyOfASecuredDialog(t *testing.T) {
	t.Parallel()
	a, b, middle := newBase(t, "a"), newBase(t, "b"), newBase(t, "middle")
	fromA, addressA := listen(t)
	fromB, addressB := listen(t)
	fromMiddle, addressMiddle := listen(t)
	into, atMiddle := newTap(t, addressMiddle)
	_, atB := newTap(t, addressB)
	_, atA := newTap(t, addressA)
	a.route("target b", atMiddle)
	b.route("source a", atMiddle)
	middle.exec("select parley.create_route('b', service_name => 'target b', address => $1, is_inbound => true)", atB)
	middle.exec("select parley.create_route('a', service_name => 'source a', address => $1, is_inbound => true)", atA)
	keysA, guardA := secured(t, false)
	keysB, guardB := secured(t, false)
	roleAtB, roleAtA := a.introduce(keysA, b), b.introduce(keysB, a)
	// Only who has signed for a may send.
	b.exec("select parley.grant('SEND', 'service', 'target b', $1)", roleAtB)
	a.exec("select parley.create_remote_service_binding('b', 'target b', $1)", roleAtA)
	da := serve(t, "first", endpoint.Config{Network: fromA, Guard: guardA}, a)
	serve(t, "second", endpoint.Config{Network: fromB, Guard: guardB}, b)
	dm := serve(t, "middle", endpoint.Config{Network: fromMiddle, Forward: true}, middle)

	large := strings.Repeat("a large secret, ", 100_000)
	there := a.begin("b")
	for _, text := range []string{"first secret", large, "last secret"} {
		a.exec("select parley.send($1::uuid, 'DEFAULT', $2::text)", there, text)
	}
	b.await(da.log, "select app.read() >= 0 and (select count(*) >= 3 from app.got where type = 'DEFAULT')")
	if got := value[string](b, "select convert_from(body, 'UTF8') from app.got where number = 1"); got != large {
		t.Errorf("%d bytes came of %d", len(got), len(large))
	}
	back := value[string](b, "select conversation_handle::text from parley.conversation_endpoints where is_initiator = 0")
	b.exec("select parley.send($1::uuid, 'DEFAULT', 'secret answer')", back)
	a.readOutbound()
	a.await(da.log, "select app.read() >= 0 and (select count(*) >= 1 from app.got where type = 'DEFAULT')")
	a.exec("select parley.end_conversation($1::uuid)", there)
	b.await(da.log, "select app.read() >= 0 and exists (select from app.got where type like '%EndDialog')")
	b.exec("select parley.end_conversation($1::uuid)", back)
	for _, side := range []*base{a, b} {
		side.awaitOver(da.log)
	}
	if into.hasSeen("secret") {
		t.Error("the forwarder has seen a body")
	}
	// It would see one: of a dialog that is not secured.
	if !into.hasSeen("target b") || dm.endpoint.Forwarded().Messages < 4 {
		t.Errorf("nothing went through the forwarder: %+v", dm.endpoint.Forwarded())
	}
	// Forwarded runs, and the way that each server chooses for runs from the network, are reported under the names of a trace.
	dm.log.Await(t, `msg="messages were forwarded" event="Broker:Forwarded Message Sent" event_id=139 address=`+atB)
	dm.log.Await(t, `event="Broker:Message Classify" event_id=141 event_subclass=2 event_subclass_name=Remote address=`+atB)
	da.log.Await(t, `event="Broker:Message Classify" event_id=141 event_subclass=1 event_subclass_name=Local address=LOCAL`)
	b.exec("select parley.grant('SEND', 'service', 'target b', 'public')")
	a.exec("select parley.drop_remote_service_binding('b')")
	a.await(da.log, "select clock_timestamp() > $1", time.Now().Add(1100*time.Millisecond))
	a.exec("select parley.send($1::uuid, 'DEFAULT', 'no secret')", a.beginInClear("b"))
	b.await(da.log, "select app.read() >= 0 and (select count(*) >= 4 from app.got where type = 'DEFAULT')")
	if !into.hasSeen("no secret") {
		t.Error("the tap sees nothing")
	}
}

// Where links are encrypted a dialog with ENCRYPTION needs no binding, as long as the target's server is at the other end of the link. A
// forwarder would see it in clear, and does not pass it on.
func TestEncryptedDialogWithoutBindingGoesNoFurtherThanOneLink(t *testing.T) {
	t.Parallel()
	a, b, middle := newBase(t, "a"), newBase(t, "b"), newBase(t, "middle")
	b.open()
	fromA, addressA := listen(t)
	fromB, addressB := listen(t)
	fromMiddle, addressMiddle := listen(t)
	b.route("source a", addressA)
	middle.exec("select parley.create_route('b', service_name => 'target b', address => $1, is_inbound => true)", addressB)
	_, guardA := secured(t, true)
	_, guardB := secured(t, true)
	da := serve(t, "first", endpoint.Config{Network: fromA, Guard: guardA}, a)
	serve(t, "second", endpoint.Config{Network: fromB, Guard: guardB}, b)
	dm := serve(t, "middle", endpoint.Config{Network: fromMiddle, Forward: true}, middle)

	a.route("target b", addressMiddle)
	handle := a.begin("b")
	a.send(handle, 1, 2)
	a.exec("select parley.send($1::uuid, 'DEFAULT', repeat('x', 1000000))", a.begin("b"))
	a.await(da.log, "select count(*) filter (where transmission_status like '9727%forwarder%') >= 2 from parley.transmission_queue")
	if dm.endpoint.Forwarded().Bytes != 0 {
		t.Errorf("the forwarder has passed on %+v", dm.endpoint.Forwarded())
	}
	a.exec("select parley.alter_route('to target b', address => $1)", addressB)
	a.send(a.begin("b"), 1, 3)
	b.await(da.log, "select app.read() >= 0 and (select count(*) >= 3 from app.got where type = 'DEFAULT' and length(body) = 1)")
}
