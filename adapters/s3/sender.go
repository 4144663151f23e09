package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// sender writes messages into objects.
type sender struct {
	endpoint adapter.Endpoint
	settings sendSettings
	address  address
	name     filename.Template

	mu     sync.Mutex
	client *minio.Client
}

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	if err := endpoint.Refuse(check(adapter.Send, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	s := &sender{endpoint: e, settings: sendDefaults()}
	adapter.CheckSettings(e.Settings, &s.settings)
	s.address, s.name, _ = targetOf(e.Address, s.settings.Macros)
	_, err := e.Permission.CheckConnect(s.address.host)
	return s, err
}

// Close gives nothing back: connections that are not used end by themselves.
func (s *sender) Close() error { return nil }

func (s *sender) connected(ctx context.Context) (*minio.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	client, err := newClient(ctx, s.endpoint, s.address, s.settings.Server)
	s.client = client
	return client, err
}

// side is how many messages are written side by side.
const side = 4

// Send writes messages, each into its object.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	client, err := s.connected(ctx)
	if err != nil {
		return endpoint.All(len(messages), endpoint.Away(err))
	}
	deliveries := make([]adapter.Delivery, len(messages))
	var writers sync.WaitGroup
	free := make(chan struct{}, side)
	for n, m := range messages {
		free <- struct{}{}
		writers.Go(func() {
			deliveries[n] = s.write(ctx, client, m)
			<-free
		})
	}
	writers.Wait()
	return deliveries
}

// partSize is how much of a body of unknown length is kept in memory.
const partSize = 16 << 20

// The metadata by which an object is known to be that of a message.
const (
	messageHeader = "Parley-Message-Id"
	portHeader    = "Parley-Port"
)

// write writes a message into an object, which is there as a whole or not at all.
func (s *sender) write(ctx context.Context, client *minio.Client, m *adapter.Message) adapter.Delivery {
	last, err := s.name.Name(m)
	if err != nil {
		return adapter.Delivery{Err: err}
	}
	name := s.address.folder + last
	if s.settings.Mode == create {
		if isOurs, err := s.free(ctx, client, name, m); err != nil || isOurs {
			return s.delivery(name, m, err)
		}
	}
	body, err := m.Open(ctx)
	if err != nil {
		return adapter.Delivery{Err: err}
	}
	options := minio.PutObjectOptions{
		ContentType: m.ContentType, PartSize: partSize,
		UserMetadata: map[string]string{messageHeader: strconv.FormatInt(m.ID, 10), portHeader: s.endpoint.Name},
	}
	if s.settings.Mode == create {
		options.SetMatchETagExcept("*") // a server that knows no conditions takes the place of what came in between
	}
	written := &source{reader: body}
	_, err = client.PutObject(ctx, s.address.bucket, name, written, m.Size, options)
	_ = body.Close()
	if written.err != nil { // of the pipeline
		return adapter.Delivery{Err: written.err}
	}
	return s.delivery(name, m, err)
}

// free requires that no other object has a name. One that this message became before a crash is its own.
func (s *sender) free(ctx context.Context, client *minio.Client, name string, m *adapter.Message) (isOurs bool, err error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(s.settings.Timeout))
	defer stop()
	there, err := client.StatObject(ctx, s.address.bucket, name, minio.StatObjectOptions{})
	switch {
	case isAbsent(err):
		return false, nil
	case err != nil:
		return false, err
	case there.UserMetadata[messageHeader] == strconv.FormatInt(m.ID, 10) && there.UserMetadata[portHeader] == s.endpoint.Name:
		return true, nil
	}
	return false, taken(name)
}

// taken is the failure of a message whose object would take the place of another one.
func taken(name string) error {
	return &adapter.Failure{Code: "send.refused", Err: fmt.Errorf(
		"there is an object %s already, and it is not overwritten: have it taken away, or %%MessageID%% in the name of objects", name)}
}

// delivery is the outcome of a message.
func (s *sender) delivery(name string, m *adapter.Message, err error) adapter.Delivery {
	if err != nil {
		return adapter.Delivery{Err: failure(name, err)}
	}
	detail, err := json.Marshal(map[string]any{"object": s.address.bucket + "/" + name, "bytes": m.Size})
	if err != nil { // texts and numbers can be encoded
		panic(err)
	}
	return adapter.Delivery{Detail: detail}
}

// failure says what should follow an error.
func failure(name string, err error) error {
	if _, isFailure := errors.AsType[*adapter.Failure](err); isFailure || errors.Is(err, context.Canceled) {
		return err
	}
	response := minio.ToErrorResponse(err)
	switch {
	case response.StatusCode == http.StatusPreconditionFailed:
		return taken(name)
	case response.StatusCode == http.StatusRequestEntityTooLarge || response.Code == minio.EntityTooLarge:
		return endpoint.Refused(fmt.Errorf("the server does not take the object %s: %w", name, err))
	case response.StatusCode >= http.StatusInternalServerError:
		return endpoint.Failed(fmt.Errorf("write the object %s: %w", name, err))
	default: // a server that is away, another login, no such bucket
		return endpoint.Away(fmt.Errorf("write the object %s: %w", name, err))
	}
}

// source is a body, with the error by which reading it has ended.
type source struct {
	reader io.Reader
	err    error
}

// Read reads a part.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
