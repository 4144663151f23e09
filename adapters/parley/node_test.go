package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsadapter "github.com/parley-broker/parley/adapters/nats"
	"github.com/parley-broker/parley/adapters/s3"
	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/flow/node"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// startNATS starts a server in this process, with a stream, and gives its host:port.
func startNATS(t *testing.T) (host string, stream jetstream.JetStream) {
	t.Helper()
	server, err := natsd.NewServer(&natsd.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() {
		server.Shutdown()
		server.WaitForShutdown()
	})
	if !server.ReadyForConnections(adaptertest.Patience) {
		t.Fatal("the server of NATS does not start")
	}
	conn, err := nats.Connect(server.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if stream, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}}); err != nil {
		t.Fatal(err)
	}
	return server.Addr().String(), stream
}

// startS3 starts a server in this process, with a bucket, and gives its host:port.
func startS3(t *testing.T) (host string, client *minio.Client) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("orders"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	host = server.Listener.Addr().String()
	client, err := minio.New(host, &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	return host, client
}

// bodies gives those of the objects of the bucket, in an order of their own.
func bodies(t *testing.T, client *minio.Client) (all []string) {
	t.Helper()
	for o := range client.ListObjectsIter(t.Context(), "orders", minio.ListObjectsOptions{Prefix: "out/"}) {
		opened, err := client.GetObject(t.Context(), "orders", o.Key, minio.GetObjectOptions{})
		if err != nil || o.Err != nil {
			t.Fatal(err, o.Err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(opened); err != nil {
			t.Fatal(err)
		}
		all = append(all, body.String())
	}
	slices.Sort(all)
	return all
}

const definitions = `{
	"application": {"Orders": {}},
	"host": {"Both": {"role": "$role"}},
	"receive port": {"From NATS": {"application": "Orders"}},
	"receive location": {"Stream": {"receive_port": "From NATS", "host": "Both", "adapter": "NATS", "address": "nats://$nats/ORDERS",
		"pipeline": "PassThruReceive", "settings": {"consumer": "parley"}}},
	"send port": {"To S3": {"application": "Orders", "host": "Both", "adapter": "S3", "address": "http://$s3/orders/out/%MessageID%.txt",
		"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "From NATS"}]],
		"secrets": {"access_key": "file:$secret", "secret_key": "file:$secret"}}}
}`

// Messages of a stream of NATS become objects of S3, each once, also when one node follows another meanwhile.
func TestMessagesGoFromNATSToS3ByARunningHost(t *testing.T) {
	t.Parallel()
	from, stream := startNATS(t)
	to, client := startS3(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := sqltest.NewBroker(t)
	b.Exec("select parley_flow.apply($1::jsonb)",
		strings.NewReplacer("$role", b.Role("both"), "$nats", from, "$s3", to, "$secret", secret).Replace(definitions))
	serve := func() (stop func()) {
		serving, err := node.New(node.Config{
			Pool: b.Pool, Hosts: []string{"Both"}, Adapters: []adapter.Kind{natsadapter.Kind, s3.Kind}, Logger: slog.New(slog.DiscardHandler),
			Permission: adapter.Permission{Connect: []string{from, to}, Secrets: []string{"file:" + secret}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- serving.Run(ctx) }()
		return func() {
			cancel()
			if err := parleytest.Receive(t, ended, "the end of the node"); err != nil {
				t.Error(err)
			}
		}
	}
	var want []string
	publish := func(count int) {
		for range count {
			body := fmt.Sprintf("order %03d", len(want))
			want = append(want, body)
			if _, err := stream.Publish(t.Context(), "orders", []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(20)
	stop := serve()
	parleytest.Until(t, "some orders are objects", func() bool { return len(bodies(t, client)) > 0 })
	publish(20)
	stop()
	publish(20)
	stop = serve()
	parleytest.Until(t, "all orders are objects", func() bool { return len(bodies(t, client)) >= len(want) })
	stop()
	if got := bodies(t, client); !slices.Equal(got, want) {
		t.Errorf("the objects are %q", got)
	}
}
