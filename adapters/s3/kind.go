// Package s3 is the adapter S3: objects of a bucket taken in, and written into one.
package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "S3",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, also with several nodes on one bucket",
		adapter.Send:    "At least once; a repeat after a crash writes the same object",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "bucket, name, ETag and time of the object",
		adapter.Send:    "the name of the object",
	},
	Check:       check,
	NewReceiver: newReceiver,
	NewSender:   newSender,
}

// The secrets of a login.
const (
	accessKeySecret    = "access_key"
	secretKeySecret    = "secret_key"
	sessionTokenSecret = "session_token"
)

// Server are the settings of a server.
type Server struct {
	Region  string           `json:"region"`
	Timeout adapter.Duration `json:"timeout"`
}

func server() Server { return Server{Region: "us-east-1", Timeout: adapter.Duration(30 * time.Second)} }

// The ends of an object that was taken.
const (
	removeIt = "remove"
	keepIt   = "keep"
)

type receiveSettings struct {
	Server
	PollInterval adapter.Duration `json:"poll_interval"`
	After        string           `json:"after"`
	BatchCount   int              `json:"batch_count"`
	BatchBytes   int64            `json:"batch_bytes"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{
		Server: server(), PollInterval: adapter.Duration(30 * time.Second), After: removeIt, BatchCount: 20, BatchBytes: 1 << 20,
	}
}

// How a port writes an object.
const (
	create    = "create"
	overwrite = "overwrite"
)

type sendSettings struct {
	Server
	Mode   string            `json:"mode"`
	Macros map[string]string `json:"macros"`
}

func sendDefaults() sendSettings { return sendSettings{Server: server(), Mode: create} }

// largest is how many bytes of one batch are kept in memory.
const largest = 64 << 20

// address is where a location or port is.
type address struct {
	isTLS  bool
	host   string // host:port
	bucket string
	folder string // with a stroke at its end; empty for none
	last   string // the mask, or the name with macros
}

const form = "Write https://host/bucket/folder/*.xml of a location, and https://host/bucket/folder/%MessageID%.xml of a port."

// readAddress reads https://host:port/bucket/folder/name.
func readAddress(written string) (address, []adapter.Problem) {
	wrong := func(message string) (address, []adapter.Problem) {
		return address{}, endpoint.Wrong(message, form, "address")
	}
	scheme, rest, _ := strings.Cut(written, "://")
	host, place, _ := strings.Cut(rest, "/")
	u, err := url.Parse(scheme + "://" + host)
	if err != nil || scheme != "http" && scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(written, "\x00\\") {
		return wrong(fmt.Sprintf("the address %q is none of a server of S3", written))
	}
	bucket, object, _ := strings.Cut(place, "/")
	folder, last := path.Split(object)
	if len(bucket) < 3 || len(bucket) > 63 || strings.ContainsAny(bucket, " %*?#") || last == "" {
		return wrong(fmt.Sprintf("the address %q names no bucket, or no objects in it", written))
	}
	a := address{isTLS: scheme == "https", host: u.Host, bucket: bucket, folder: folder, last: last}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[a.isTLS])
	}
	return a, nil
}

// targetOf reads the address of a port.
func targetOf(written string, own map[string]string) (address, filename.Template, []adapter.Problem) {
	a, problems := readAddress(written)
	if problems != nil {
		return a, filename.Template{}, problems
	}
	if strings.Contains(a.folder, "%") {
		return a, filename.Template{}, endpoint.Wrong("the folder of the address has a percent sign",
			"Macros stand in the name of the object alone.", "address")
	}
	template, problem := filename.Parse(a.last, own)
	if problem != nil {
		return a, template, endpoint.Wrong(problem.Message, problem.Remedy, "address")
	}
	return a, template, nil
}

func check(direction adapter.Direction, written string, raw json.RawMessage, secrets []string) []adapter.Problem {
	var a address
	var s Server
	var problems []adapter.Problem
	if direction == adapter.Send {
		settings := sendDefaults()
		problems = adapter.CheckSettings(raw, &settings)
		problems = append(problems, adapter.OneOf("mode", settings.Mode, create, overwrite)...)
		problems = append(problems, filename.CheckOwn(settings.Macros)...)
		var wrong []adapter.Problem
		a, _, wrong = targetOf(written, settings.Macros)
		problems, s = append(problems, wrong...), settings.Server
	} else {
		settings := receiveDefaults()
		problems = adapter.CheckSettings(raw, &settings)
		problems = append(problems, adapter.OneOf("after", settings.After, removeIt, keepIt)...)
		problems = append(problems, adapter.NotBelow("poll_interval", settings.PollInterval, adapter.Duration(100*time.Millisecond))...)
		problems = append(problems, adapter.Between("batch_count", int64(settings.BatchCount), 1, 1000)...)
		problems = append(problems, adapter.Between("batch_bytes", settings.BatchBytes, 1, largest)...)
		var wrong []adapter.Problem
		a, wrong = readAddress(written)
		if problems, s = append(problems, wrong...), settings.Server; wrong == nil {
			if _, err := path.Match(a.last, ""); err != nil {
				problems = append(problems, endpoint.Wrong(fmt.Sprintf("the mask %q cannot be read", a.last),
					"Write * for any characters, ? for one, and [a-z] for one of some.", "address")...)
			}
		}
	}
	problems = append(problems, adapter.NotBelow("timeout", s.Timeout, adapter.Duration(100*time.Millisecond))...)
	problems = append(problems, adapter.OnlySecrets(secrets, accessKeySecret, secretKeySecret, sessionTokenSecret, endpoint.AuthoritySecret,
		endpoint.CertificateSecret, endpoint.KeySecret)...)
	if slices.Contains(secrets, accessKeySecret) != slices.Contains(secrets, secretKeySecret) {
		problems = append(problems, endpoint.Wrong("an access key and its secret go together",
			"Give the secrets access_key and secret_key, or neither.", "secrets")...)
	}
	return append(problems, endpoint.CheckTLS(a.isTLS, secrets)...)
}

// login reads the keys anew for each request.
type login struct{ endpoint adapter.Endpoint }

// Retrieve reads the keys.
func (l login) Retrieve() (credentials.Value, error) { return l.RetrieveWithCredContext(nil) }

// RetrieveWithCredContext reads the keys.
func (l login) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	value := credentials.Value{SignerType: credentials.SignatureV4}
	for name, into := range map[string]*string{
		accessKeySecret: &value.AccessKeyID, secretKeySecret: &value.SecretAccessKey, sessionTokenSecret: &value.SessionToken,
	} {
		var err error
		if *into, _, err = endpoint.Secret(context.Background(), l.endpoint, name); err != nil {
			return credentials.Value{}, err
		}
	}
	if value.AccessKeyID == "" {
		value.SignerType = credentials.SignatureAnonymous
	}
	return value, nil
}

// IsExpired lets keys be read anew.
func (l login) IsExpired() bool { return true }

// newClient makes a client, which connects where the operator permits it.
func newClient(ctx context.Context, e adapter.Endpoint, a address, s Server) (*minio.Client, error) {
	timeout := time.Duration(s.Timeout)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, host string) (net.Conn, error) {
			return e.Permission.DialContext(ctx, network, host, timeout)
		},
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: side,
		DisableCompression: true,
	}
	if a.isTLS {
		host, _, _ := net.SplitHostPort(a.host)
		config, err := endpoint.TLS(ctx, e, host)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = config
	}
	client, err := minio.New(a.host, &minio.Options{
		Creds: credentials.New(login{e}), Secure: a.isTLS, Transport: transport, Region: s.Region, BucketLookup: minio.BucketLookupPath,
		MaxRetries: 1, // the engine tries again
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of S3: %w", err)
	}
	return client, nil
}
