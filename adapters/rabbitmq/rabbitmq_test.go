package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/parley-broker/parley/adapters/endpoint/endpointtest"
	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	page "github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/mail/mailtest"
)

func TestTheAdapterKeepsTheRulesOfDefinitions(t *testing.T) {
	t.Parallel()
	adaptertest.CheckKind(t, Kind)
	page.CheckPage(t, Kind, adapter.Receive, receiveDefaults(), passwordSecret, "authority", "certificate", "private_key")
	page.CheckPage(t, Kind, adapter.Send, sendDefaults(), passwordSecret, "authority", "certificate", "private_key")
	page.CheckExamples(t, Kind)
}

// program is where Debian and the vendor's packages have the program itself, which a user may start, and not the service.
const program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// start starts a broker of its own, and gives its host:port, and the one with TLS with the authority of its certificate.
func start(t *testing.T) (host, secured, authority string) {
	t.Helper()
	mailtest.Program(t, program, "PARLEY_TEST_REQUIRE_RABBITMQ")
	folder, err := os.MkdirTemp("", "parley-rabbitmq-")
	if err != nil {
		t.Fatal(err)
	}
	var ports []string
	for range 4 {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		ports = append(ports, port)
		_ = listener.Close()
	}
	certificate, key := mailtest.CertificateFiles(t, endpointtest.Host)
	configuration := fmt.Sprintf("listeners.ssl.1 = 127.0.0.1:%s\nssl_options.cacertfile = %s\nssl_options.certfile = %s\n"+
		"ssl_options.keyfile = %s\nssl_options.verify = verify_none\n", ports[3], certificate, certificate, key)
	if err := os.WriteFile(filepath.Join(folder, "rabbitmq.conf"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	// A name server of its own, so that it can be ended without asking whose nodes it knows.
	environment := append(os.Environ(), "ERL_EPMD_PORT="+ports[2], "ERL_EPMD_ADDRESS=127.0.0.1", "HOME="+folder)
	server := exec.Command(program)
	server.Env = append(slices.Clone(environment), "RABBITMQ_NODENAME=parley-test@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+ports[0], "RABBITMQ_DIST_PORT="+ports[1], "RABBITMQ_MNESIA_BASE="+filepath.Join(folder, "data"),
		"RABBITMQ_LOG_BASE="+filepath.Join(folder, "log"), "RABBITMQ_PID_FILE="+filepath.Join(folder, "pid"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(folder, "plugins"), "RABBITMQ_CONFIG_FILE="+filepath.Join(folder, "rabbitmq"))
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
		names := exec.Command("epmd", "-kill")
		names.Env = environment
		_ = names.Run()
		_ = os.RemoveAll(folder)
	})
	host, secured = "127.0.0.1:"+ports[0], endpointtest.Host+":"+ports[3]
	for deadline := time.Now().Add(2 * adaptertest.Patience); ; {
		if conn, err := amqp.Dial("amqp://guest:guest@" + host); err == nil {
			_ = conn.Close()
			return host, secured, string(pem)
		} else if time.Now().After(deadline) {
			t.Fatalf("RabbitMQ does not start: %v", err)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// side is a test's own channel to a broker.
func side(t *testing.T, host string, queues ...string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial("amqp://guest:guest@" + host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range queues {
		if _, err := channel.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			t.Fatal(err)
		}
	}
	return channel
}

func endpointOf(address, settings string, host string) adapter.Endpoint {
	return adapter.Endpoint{
		Name: "Test", Address: address, Settings: json.RawMessage(settings), Permission: adapter.Permission{Connect: []string{host}},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// One broker serves all rules: it takes seconds to start.
func TestWithRabbitMQ(t *testing.T) {
	t.Parallel()
	host, secured, authority := start(t)
	t.Run("a server is trusted and logs in by its secrets", func(t *testing.T) {
		t.Parallel()
		_ = side(t, host, "secured")
		endpointtest.Check(t, endpointtest.Login{
			Kind: Kind, Send: endpointOf("amqps://"+secured+"/", `{"routing_key": "secured", "timeout": "10 seconds"}`, secured),
			Receive: endpointOf("amqps://"+secured+"/secured", `{"timeout": "10 seconds"}`, secured), Wrong: passwordSecret, User: "guest",
			Good: map[string]string{passwordSecret: "guest", "authority": authority},
		})
	})
	t.Run("a location keeps the rules", func(t *testing.T) {
		t.Parallel()
		channel := side(t, host, "in")
		adaptertest.CheckReceiver(t, adaptertest.Source{
			Kind: Kind, Endpoint: endpointOf("amqp://"+host+"/in", `{"batch_count": 2}`, host), HasKeys: true,
			Put: func(body string) {
				err := channel.PublishWithContext(t.Context(), "", "in", false, false, amqp.Publishing{MessageId: body, Body: []byte(body)})
				if err != nil {
					t.Error(err)
				}
			},
		})
		if left, err := channel.QueueDeclarePassive("in", true, false, false, false, nil); err != nil || left.Messages != 0 {
			t.Errorf("%d messages are left in the queue, %v", left.Messages, err)
		}
	})
	t.Run("a port keeps the rules", func(t *testing.T) {
		t.Parallel()
		adaptertest.CheckSender(t, adaptertest.Destination{
			Kind: Kind, Endpoint: endpointOf("amqp://"+host+"/", `{"routing_key": "out"}`, host), Received: collect(t, side(t, host, "out"), "out"),
		})
	})
	t.Run("a message that no queue takes is not sent", func(t *testing.T) {
		t.Parallel()
		made, err := Kind.NewSender(endpointOf("amqp://"+host+"/", `{"routing_key": "nowhere"}`, host))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = made.Close() }()
		for range 20 { // a confirm and a message that comes back run beside each other
			d := made.Send(t.Context(), []*adapter.Message{adaptertest.Message(1, "one"), adaptertest.Message(2, "two")})
			requireFailure(t, d[0].Err, "send.refused", "no queue takes the message")
			requireFailure(t, d[1].Err, "send.refused", "no queue takes the message")
		}
	})
	t.Run("an exchange that is not there holds the port", func(t *testing.T) {
		t.Parallel()
		made, err := Kind.NewSender(endpointOf("amqp://"+host+"/no-such-exchange", `{}`, host))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = made.Close() }()
		requireFailure(t, made.Send(t.Context(), []*adapter.Message{adaptertest.Message(1, "one")})[0].Err, "send.unreachable", "no exchange")
	})
	t.Run("a connection goes only where the operator permits it", func(t *testing.T) {
		t.Parallel()
		if _, err := Kind.NewSender(endpointOf("amqp://"+host+"/", `{}`, "elsewhere.example:5672")); !errors.Is(err, adapter.ErrNotPermitted) {
			t.Errorf("a sender is made with %v", err)
		}
		if _, err := Kind.NewReceiver(endpointOf("amqp://"+host+"/in", `{}`, "elsewhere.example:5672")); !errors.Is(err, adapter.ErrNotPermitted) {
			t.Errorf("a receiver is made with %v", err)
		}
	})
}

func requireFailure(t *testing.T, err error, code, text string) {
	t.Helper()
	failure, is := errors.AsType[*adapter.Failure](err)
	if !is || failure.Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("the failure is %v, and not %s with %q", err, code, text)
	}
}

// collect gives the bodies that come to a queue.
func collect(t *testing.T, channel *amqp.Channel, queue string) func() []string {
	t.Helper()
	deliveries, err := channel.ConsumeWithContext(context.WithoutCancel(t.Context()), queue, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var bodies []string
	go func() {
		for d := range deliveries {
			mu.Lock()
			bodies = append(bodies, string(d.Body))
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(bodies)
	}
}
