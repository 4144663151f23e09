package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// receiver takes the objects of a bucket in.
type receiver struct {
	endpoint adapter.Endpoint
	settings receiveSettings
	address  address
	client   *minio.Client
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	if err := endpoint.Refuse(check(adapter.Receive, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	r := &receiver{endpoint: e, settings: receiveDefaults()}
	adapter.CheckSettings(e.Settings, &r.settings)
	r.address, _ = readAddress(e.Address)
	_, err := e.Permission.CheckConnect(r.address.host)
	return r, err
}

// Run looks into the bucket again and again until ctx ends.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	var err error
	if r.client, err = newClient(ctx, r.endpoint, r.address, r.settings.Server); err != nil {
		return err
	}
	if err := r.settle(ctx, in); err != nil {
		return endpoint.Ended(ctx, err)
	}
	for {
		if err := in.Await(ctx); err != nil {
			return endpoint.Ended(ctx, err)
		}
		if err := r.poll(ctx, in); err != nil {
			return endpoint.Ended(ctx, err)
		}
		select {
		case <-time.After(time.Duration(r.settings.PollInterval)):
		case <-ctx.Done():
			return nil
		}
	}
}

// object is an object as it was found. The ledger keeps it beside its key.
type object struct {
	Name     string    `json:"name"`
	ETag     string    `json:"etag"`
	Modified time.Time `json:"modified"`
	size     int64
}

// key is the key of an object in the ledger: what is written anew under its name is another one, also with the same bytes.
func (r *receiver) key(o object) string {
	name := o.Name
	if len(name) > 900 {
		name = name[:900] // its hash is in the ETag
	}
	return r.address.bucket + ":" + name + ":" + o.ETag + ":" + strconv.FormatInt(o.Modified.UnixNano(), 10)
}

// settle removes the objects that were taken, and whose removal was cut off.
func (r *receiver) settle(ctx context.Context, in adapter.Intake) error {
	if r.settings.After == keepIt {
		return nil
	}
	entries, err := in.Taken(ctx)
	if err != nil {
		return fmt.Errorf("find what was taken: %w", err)
	}
	for _, e := range entries {
		var o object
		if err := json.Unmarshal(e.Entry, &o); err != nil {
			return fmt.Errorf("read an entry of the ledger: %w", err)
		}
		if err := r.remove(ctx, in, o, e.Key); err != nil {
			return err
		}
	}
	return nil
}

// remove removes an object that was taken, unless another one has come under its name, and records that.
func (r *receiver) remove(ctx context.Context, in adapter.Intake, o object, key string) error {
	there, err := r.client.StatObject(ctx, r.address.bucket, o.Name, minio.StatObjectOptions{})
	switch {
	case isAbsent(err): // another node was faster
	case err != nil:
		return fmt.Errorf("find the object %s: %w", o.Name, err)
	case there.ETag == o.ETag:
		if err := r.client.RemoveObject(ctx, r.address.bucket, o.Name, minio.RemoveObjectOptions{}); err != nil {
			return fmt.Errorf("remove the object %s: %w", o.Name, err)
		}
	}
	return in.Removed(ctx, []string{key})
}

func isAbsent(err error) bool {
	return err != nil && minio.ToErrorResponse(err).StatusCode == http.StatusNotFound && minio.ToErrorResponse(err).Code != minio.NoSuchBucket
}

// atOnce is how many objects are asked about at once.
const atOnce = 1000

// poll takes in what the bucket has.
func (r *receiver) poll(ctx context.Context, in adapter.Intake) error {
	listing, stop := context.WithCancel(ctx)
	defer stop()
	var found []object
	mask := r.address.last
	for o := range r.client.ListObjectsIter(listing, r.address.bucket, minio.ListObjectsOptions{Prefix: r.prefix()}) {
		if o.Err != nil {
			return fmt.Errorf("list the bucket %s: %w", r.address.bucket, o.Err)
		}
		name, isBelow := strings.CutPrefix(o.Key, r.address.folder)
		if matches, _ := path.Match(mask, name); !isBelow || !matches || strings.HasSuffix(o.Key, "/") {
			continue
		}
		found = append(found, object{Name: o.Key, ETag: o.ETag, Modified: o.LastModified, size: o.Size})
		if len(found) == atOnce {
			if err := r.takeAll(ctx, in, found); err != nil {
				return err
			}
			found = nil
		}
	}
	return r.takeAll(ctx, in, found)
}

// prefix is with what the names of all objects begin that the mask may have.
func (r *receiver) prefix() string {
	if at := strings.IndexAny(r.address.last, `*?[\`); at >= 0 {
		return r.address.folder + r.address.last[:at]
	}
	return r.address.folder + r.address.last
}

// batch is a group of objects that go into one transaction.
type batch struct {
	objects []object
	inputs  []adapter.Input
	size    int64
}

// takeAll takes in those objects that the ledger does not know, and removes the others.
func (r *receiver) takeAll(ctx context.Context, in adapter.Intake, found []object) error {
	keys := make([]string, len(found))
	for n, o := range found {
		keys[n] = r.key(o)
	}
	known, err := in.Known(ctx, keys)
	if err != nil {
		return fmt.Errorf("ask for what was taken: %w", err)
	}
	var b batch
	for n, o := range found {
		if known[keys[n]] {
			if err := r.finish(ctx, in, o, keys[n]); err != nil {
				return err
			}
			continue
		}
		if len(b.inputs) == r.settings.BatchCount || len(b.inputs) > 0 && b.size+o.size > r.settings.BatchBytes {
			if err := r.take(ctx, in, b); err != nil {
				return err
			}
			b = batch{}
		}
		input, err := r.input(ctx, o, keys[n])
		if errors.Is(err, errChanged) {
			continue // the next poll finds what there is now
		}
		if err != nil {
			return err
		}
		b.objects, b.inputs, b.size = append(b.objects, o), append(b.inputs, input), b.size+o.size
	}
	return r.take(ctx, in, b)
}

// take takes objects in, and removes them.
func (r *receiver) take(ctx context.Context, in adapter.Intake, b batch) error {
	if len(b.inputs) == 0 {
		return nil
	}
	if err := endpoint.Take(ctx, r.endpoint, in, b.inputs, nil); err != nil {
		return err
	}
	for n, o := range b.objects {
		if err := r.finish(ctx, in, o, b.inputs[n].Key); err != nil {
			return err
		}
	}
	return nil
}

// finish removes an object that was taken, where the location removes any.
func (r *receiver) finish(ctx context.Context, in adapter.Intake, o object, key string) error {
	if r.settings.After == keepIt {
		return nil
	}
	return r.remove(ctx, in, o, key)
}

// errChanged is an object that is another one, or gone, since it was found.
var errChanged = errors.New("the object has changed since it was found")

// input makes an input of an object. A small one is read at once, so that one that cannot be read keeps no other back.
func (r *receiver) input(ctx context.Context, o object, key string) (adapter.Input, error) {
	entry, err := json.Marshal(o)
	if err != nil {
		return adapter.Input{}, fmt.Errorf("write an entry of the ledger: %w", err)
	}
	input := adapter.Input{
		Key: key, Entry: entry, Size: o.size, Promoted: map[string]any{"SourceFileName": path.Base(o.Name)},
		Open: func(ctx context.Context) (io.ReadCloser, error) { return r.open(ctx, o) },
	}
	if o.size > r.settings.BatchBytes {
		return input, nil
	}
	opened, err := r.open(ctx, o)
	if err != nil {
		return input, err
	}
	var body bytes.Buffer
	n, err := io.Copy(&body, io.LimitReader(opened, o.size+1))
	if err = errors.Join(err, opened.Close()); err == nil && n != o.size {
		err = errChanged
	}
	if err != nil {
		r.warn(o, err)
		if isAbsent(err) || minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed {
			err = errChanged
		}
		return input, err
	}
	input.Open, input.Body = nil, body.Bytes()
	return input, nil
}

// open reads an object, if it is that one still.
func (r *receiver) open(ctx context.Context, o object) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if err := options.SetMatchETag(strings.Trim(o.ETag, `"`)); err != nil {
		return nil, fmt.Errorf("ask for the object %s: %w", o.Name, err)
	}
	opened, err := r.client.GetObject(ctx, r.address.bucket, o.Name, options)
	if err != nil {
		return nil, fmt.Errorf("open the object %s: %w", o.Name, err)
	}
	return opened, nil
}

func (r *receiver) warn(o object, err error) {
	if r.endpoint.Logger != nil {
		r.endpoint.Logger.Warn("an object cannot be read", slog.String("object", o.Name), slog.Any("error", err))
	}
}
