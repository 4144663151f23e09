package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	page "github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

var allSecrets = []string{accessKeySecret, secretKeySecret, sessionTokenSecret, "authority", "certificate", "private_key"}

func TestTheAdapterKeepsTheRulesOfDefinitions(t *testing.T) {
	t.Parallel()
	adaptertest.CheckKind(t, Kind)
	page.CheckPage(t, Kind, adapter.Receive, receiveDefaults(), allSecrets...)
	page.CheckPage(t, Kind, adapter.Send, sendDefaults(), allSecrets...)
	page.CheckExamples(t, Kind)
}

// bucket is a bucket of a server in this process.
type bucket struct {
	t      *testing.T
	host   string
	client *minio.Client
}

func start(t *testing.T) *bucket {
	t.Helper()
	server := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	client, err := minio.New(host, &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), "orders", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return &bucket{t, host, client}
}

func (b *bucket) endpoint(last, settings string) adapter.Endpoint {
	values := map[string]string{accessKeySecret: "key", secretKeySecret: "secret"}
	return adapter.Endpoint{
		Name: "Test", Address: "http://" + b.host + "/orders/" + last, Settings: json.RawMessage(settings),
		Permission: adapter.Permission{Connect: []string{b.host}}, Logger: slog.New(slog.DiscardHandler),
		Secret: func(_ context.Context, name string) (string, bool, error) {
			value, found := values[name]
			return value, found, nil
		},
	}
}

func (b *bucket) put(name, body string) {
	_, err := b.client.PutObject(context.WithoutCancel(b.t.Context()), "orders", name, strings.NewReader(body), int64(len(body)),
		minio.PutObjectOptions{})
	if err != nil {
		b.t.Error(err)
	}
}

// objects gives the names of the objects below a folder.
func (b *bucket) objects(folder string) (names []string) {
	for o := range b.client.ListObjectsIter(context.WithoutCancel(b.t.Context()), "orders", minio.ListObjectsOptions{Prefix: folder}) {
		if o.Err != nil {
			b.t.Error(o.Err)
		}
		names = append(names, o.Key)
	}
	return names
}

func (b *bucket) read(name string) string {
	opened, err := b.client.GetObject(context.WithoutCancel(b.t.Context()), "orders", name, minio.GetObjectOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(opened); err != nil {
		b.t.Error(err)
	}
	return body.String()
}

func TestALocationKeepsTheRules(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.put("in/left-alone.txt", "no order")
	adaptertest.CheckReceiver(t, adaptertest.Source{
		// Two bytes in memory at most: so "three" is streamed, and the others go in batches.
		Kind: Kind, Endpoint: b.endpoint("in/*.xml", `{"poll_interval": "100 milliseconds", "batch_bytes": 4}`), HasKeys: true,
		Put:  func(body string) { b.put("in/"+body+".xml", body) },
		Left: func() int { return len(b.objects("in/")) - 1 },
	})
}

func TestAPortKeepsTheRules(t *testing.T) {
	t.Parallel()
	b := start(t)
	adaptertest.CheckSender(t, adaptertest.Destination{
		Kind: Kind, Endpoint: b.endpoint("out/%MessageID%.xml", `{}`),
		Received: func() (bodies []string) {
			for _, name := range b.objects("out/") {
				bodies = append(bodies, b.read(name))
			}
			return bodies
		},
	})
}

// An object of the same bytes under the same name is new when it was written anew, and a kept one is taken once.
func TestAnObjectIsKnownByItsETagAndTime(t *testing.T) {
	t.Parallel()
	r := &receiver{address: address{bucket: "orders"}}
	o := object{Name: "a.xml", ETag: "e"}
	again := o
	again.Modified = again.Modified.Add(1e9)
	other := o
	other.ETag = "f"
	if r.key(o) == r.key(again) || r.key(o) == r.key(other) || r.key(o) != r.key(object{Name: "a.xml", ETag: "e"}) {
		t.Errorf("the keys are %s, %s and %s", r.key(o), r.key(again), r.key(other))
	}
}

func TestAnObjectOfOthersIsNotOverwritten(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.put("out/fixed.xml", "theirs")
	send := func(settings string) error {
		made, err := Kind.NewSender(b.endpoint("out/fixed.xml", settings))
		if err != nil {
			t.Fatal(err)
		}
		return made.Send(t.Context(), []*adapter.Message{adaptertest.Message(1, "ours")})[0].Err
	}
	if failure, is := errors.AsType[*adapter.Failure](send(`{}`)); !is || failure.Code != "send.refused" || b.read("out/fixed.xml") != "theirs" {
		t.Errorf("the failure is %v, and the object %q", failure, b.read("out/fixed.xml"))
	}
	if err := send(`{"mode": "overwrite"}`); err != nil || b.read("out/fixed.xml") != "ours" {
		t.Errorf("the failure is %v, and the object %q", err, b.read("out/fixed.xml"))
	}
}
