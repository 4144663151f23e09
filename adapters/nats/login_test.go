package nats

import (
	"testing"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-broker/parley/adapters/endpoint/endpointtest"
	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
)

func TestAServerIsTrustedAndLogsInByItsSecrets(t *testing.T) {
	t.Parallel()
	config, authority := endpointtest.Server(t)
	s, err := natsd.NewServer(&natsd.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		TLS: true, TLSConfig: config, TLSTimeout: 10, Username: "parley", Password: "the-password",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(adaptertest.Patience) {
		t.Fatal("the server of NATS does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("parley", "the-password"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}}); err != nil {
		t.Fatal(err)
	}
	host := s.Addr().String()
	host = endpointtest.Host + host[len("127.0.0.1"):]
	endpointtest.Check(t, endpointtest.Login{
		Kind: Kind, Send: endpointOf("tls://"+host+"/orders", `{"user": "parley", "timeout": "5 seconds"}`, host),
		Receive: endpointOf("tls://"+host+"/ORDERS", `{"user": "parley", "consumer": "parley", "timeout": "5 seconds"}`, host),
		Good:    map[string]string{"password": "the-password", "authority": authority}, Wrong: passwordSecret,
		Plain: "nats://" + host + "/orders",
	})
}

// A value of a message stays a value, and begins no other header.
func TestAPropertyAddsNoHeader(t *testing.T) {
	t.Parallel()
	host, stream, _ := start(t, "out")
	made, err := Kind.NewSender(endpointOf("nats://"+host+"/out", `{"headers": {"Shop": "urn:p#Shop"}}`, host))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = made.Close() }()
	m := adaptertest.Message(1, "one")
	m.Promoted = map[string]string{"urn:p#Shop": "north\r\nNats-Expected-Stream: OTHER\r\nOther: yes"}
	m.ContentType = "text/plain\r\nWorse: yes"
	if err := made.Send(t.Context(), []*adapter.Message{m})[0].Err; err != nil {
		t.Log("it is refused:", err)
		return
	}
	stored, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Other", "Worse", "Nats-Expected-Stream"} {
		if stored.Header.Get(name) != "" {
			t.Errorf("the message has the headers %v", stored.Header)
		}
	}
}
