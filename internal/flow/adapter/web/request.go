package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

const (
	// throttledPause is when a client is asked to come again while intake is throttled, busyPause while too many requests are under way.
	throttledPause = 5 * time.Second
	busyPause      = time.Second
	// answerTimeout is how long a client may take to read its answer.
	answerTimeout = 30 * time.Second
	// keyBytesMax bounds an idempotency key.
	keyBytesMax = 255
)

// answer is the body of an answer of success.
type answer struct {
	Outcome   adapter.Outcome `json:"outcome"`
	MessageID int64           `json:"message_id,omitempty"` // the first that came of the request
	Messages  int             `json:"messages"`
	Error     string          `json:"error,omitempty"`
}

// refusal is a request that is not taken.
type refusal struct {
	status     int
	reason     string
	retryAfter time.Duration
	cause      error // for the log; never for the client
}

func (r *refusal) Error() string { return r.reason }

func (r *refusal) Unwrap() error { return r.cause }

// handler gives what answers requests of the location. work outlives the clients.
func (l *location) handler(work context.Context, in adapter.Intake) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		taken, err := l.take(work, in, w, r)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
		if refused, ok := errors.AsType[*refusal](err); ok {
			if refused.cause != nil {
				l.Logger.Warn("a request could not be taken", "location", l.Name, "status", refused.status, "error", refused.cause)
			} else {
				l.Logger.Debug("a request was refused", "location", l.Name, "status", refused.status, "reason", refused.reason)
			}
			switch refused.status {
			case http.StatusUnauthorized:
				w.Header().Set("WWW-Authenticate", l.sender.challenge())
			case http.StatusMethodNotAllowed:
				w.Header().Set("Allow", strings.Join(l.settings.Methods, ", "))
			}
			refuse(w, refused.status, refused.reason, refused.retryAfter)
			return
		}
		if in.Responds() {
			l.respond(work, w, taken)
			return
		}
		l.accept(w, taken.Result)
	}
}

// accept answers a request whose messages are committed.
func (l *location) accept(w http.ResponseWriter, result adapter.Result) {
	status := http.StatusAccepted
	body := answer{Outcome: result.Outcome, MessageID: result.Message, Messages: result.Messages}
	switch {
	case result.Outcome == adapter.Repeated:
		status = http.StatusOK
	case result.Outcome == adapter.Suspended && result.Failure != nil && l.settings.SuspendedStatus != status:
		status, body.Error = l.settings.SuspendedStatus, result.Failure.Error()
	}
	if result.Message != 0 {
		w.Header().Set("Parley-Message-Id", strconv.FormatInt(result.Message, 10))
	}
	writeJSON(w, status, body)
}

func refuse(w http.ResponseWriter, status int, reason string, retryAfter time.Duration) {
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	writeJSON(w, status, map[string]string{"error": reason})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that does not read its answer has gone.
	_ = json.NewEncoder(w).Encode(body)
}

// take puts a request into the message box, and waits for its answer where the port responds, or gives a [refusal].
func (l *location) take(work context.Context, in adapter.Intake, w http.ResponseWriter, r *http.Request) (adapter.Reply, error) {
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	default:
		return adapter.Reply{}, &refusal{status: http.StatusServiceUnavailable, reason: "too many requests at once", retryAfter: busyPause}
	}
	input, err := l.head(r)
	if err != nil {
		return adapter.Reply{}, err
	}
	var who string
	if !l.sender.needsBody() {
		if who, err = l.authenticate(work, r, nil); err != nil {
			return adapter.Reply{}, err
		}
	}
	if l.sender.needsBody() && !l.sender.mayBeSigned(r) {
		return adapter.Reply{}, errUnidentified()
	}
	if in.Throttled() {
		return adapter.Reply{}, &refusal{status: http.StatusServiceUnavailable, reason: "intake is throttled", retryAfter: throttledPause}
	}
	body, err := l.read(w, r)
	if err != nil {
		return adapter.Reply{}, err
	}
	defer body.close()
	if l.sender.needsBody() {
		if who, err = l.authenticate(work, r, body.open); err != nil {
			return adapter.Reply{}, err
		}
	}
	input.Size, input.Body = body.size, body.memory
	if body.file != nil {
		input.Open = func(context.Context) (io.ReadCloser, error) { return body.open() }
	} else if input.Body == nil {
		input.Body = []byte{}
	}
	if who != "" {
		input.Written[namespace+"Caller"] = who
	}
	if input.Key != "" {
		input.Key = ledgerKey(who, input.Key)
	}
	reply, err := put(work, in, input, r.Context().Done())
	if err != nil {
		return adapter.Reply{}, &refusal{
			status: http.StatusServiceUnavailable, reason: "nothing was stored; try again", retryAfter: throttledPause, cause: err,
		}
	}
	return reply, nil
}

// put gives an input to the host. Where clients wait for answers it waits too.
func put(work context.Context, in adapter.Intake, input adapter.Input, gone <-chan struct{}) (adapter.Reply, error) {
	if in.Responds() {
		return in.Request(work, input, gone)
	}
	results, err := in.Take(work, []adapter.Input{input})
	if err := errors.Join(err, errCount(len(results), err)); err != nil {
		return adapter.Reply{}, err
	}
	return adapter.Reply{Result: results[0]}, nil
}

func errCount(n int, err error) error {
	if err == nil && n != 1 {
		return errors.New("an input has not one result")
	}
	return nil
}

// ledgerKey is that of a request: the same key of another caller is another one.
func ledgerKey(who, key string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(who)) + ":" + who + key))
	return "http:" + hex.EncodeToString(sum[:])
}

func (l *location) authenticate(ctx context.Context, r *http.Request, body func() (io.ReadCloser, error)) (string, error) {
	who, ok, err := l.sender.caller(ctx, r, body)
	if err != nil {
		return "", &refusal{
			status: http.StatusServiceUnavailable, reason: "callers cannot be identified now", retryAfter: throttledPause, cause: err,
		}
	}
	if !ok {
		return "", errUnidentified()
	}
	return who, nil
}

func errUnidentified() error {
	return &refusal{status: http.StatusUnauthorized, reason: "the caller is not identified"}
}

// head judges a request before its body, and gives the input without it; its key is as the client has given it.
func (l *location) head(r *http.Request) (adapter.Input, error) {
	input := adapter.Input{
		MessageType: l.settings.MessageType, Written: map[string]any{namespace + "Method": r.Method}, Promoted: map[string]any{},
	}
	if !slices.Contains(l.settings.Methods, r.Method) {
		return input, &refusal{status: http.StatusMethodNotAllowed, reason: "the method brings no message here"}
	}
	if r.ContentLength > l.settings.MaxBytes {
		return input, &refusal{status: http.StatusRequestEntityTooLarge, reason: "the body is too large"}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return input, &refusal{status: http.StatusUnsupportedMediaType, reason: "send the body without a content encoding"}
	}
	if given := r.Header.Get("Content-Type"); given != "" {
		mediaType, parameters, err := mime.ParseMediaType(given)
		if err != nil {
			return input, &refusal{status: http.StatusUnsupportedMediaType, reason: "the content type cannot be read"}
		}
		input.ContentType, input.Charset = mediaType, parameters["charset"]
	}
	if len(l.settings.ContentTypes) > 0 && !slices.ContainsFunc(l.settings.ContentTypes, func(t string) bool {
		return strings.EqualFold(t, input.ContentType)
	}) {
		return input, &refusal{status: http.StatusUnsupportedMediaType, reason: "the content type is none of those that are taken here"}
	}
	if err := l.identify(r, &input); err != nil {
		return input, err
	}
	return input, l.properties(r, &input)
}

// identify reads the idempotency key.
func (l *location) identify(r *http.Request, input *adapter.Input) error {
	if l.settings.Idempotency == "ignored" {
		return nil
	}
	given := r.Header.Values(l.settings.IdempotencyHeader)
	switch {
	case len(given) > 1 || len(given) == 1 && (given[0] == "" || len(given[0]) > keyBytesMax):
		return &refusal{
			status: http.StatusBadRequest, reason: l.settings.IdempotencyHeader + " has to be one text of 1 to 255 bytes",
		}
	case len(given) == 1:
		input.Key = given[0]
	case l.settings.Idempotency == "required":
		return &refusal{status: http.StatusBadRequest, reason: "give each message a " + l.settings.IdempotencyHeader}
	}
	return nil
}

// properties reads what the settings make properties of. A value that comes twice is refused: what is in front of the listener may have
// judged by another one of the two than a filter would.
func (l *location) properties(r *http.Request, input *adapter.Input) error {
	query := url.Values{}
	if len(l.settings.Query)+len(l.settings.PromotedQuery) > 0 {
		var err error
		if query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return &refusal{status: http.StatusBadRequest, reason: "the query cannot be read"}
		}
	}
	for _, of := range []struct {
		into   map[string]any
		from   map[string]string
		values func(name string) []string
	}{
		{input.Written, l.settings.Headers, r.Header.Values},
		{input.Written, l.settings.Query, func(name string) []string { return query[name] }},
		{input.Promoted, l.settings.PromotedHeaders, r.Header.Values},
		{input.Promoted, l.settings.PromotedQuery, func(name string) []string { return query[name] }},
	} {
		for name, property := range of.from {
			given := of.values(name)
			if len(given) > 1 {
				return &refusal{status: http.StatusBadRequest, reason: name + " is there more than once"}
			}
			if len(given) == 1 && given[0] != "" {
				of.into[property] = strings.ReplaceAll(strings.ToValidUTF8(given[0], "\uFFFD"), "\x00", "\uFFFD")
			}
		}
	}
	return nil
}

// read gives the body of a request, whose client may neither be slow nor send too much.
func (l *location) read(w http.ResponseWriter, r *http.Request) (*spool, error) {
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(time.Duration(l.settings.ReadTimeout)))
	client := &watched{Reader: http.MaxBytesReader(w, r.Body, l.settings.MaxBytes)}
	body, err := fill(client)
	if err == nil {
		_ = deadlines.SetReadDeadline(time.Time{})
		return body, nil
	}
	_ = deadlines.SetReadDeadline(time.Now().Add(refusedTimeout))
	if client.err == nil {
		return nil, &refusal{
			status: http.StatusServiceUnavailable, reason: "the body could not be kept", retryAfter: throttledPause, cause: err,
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, reason: "the body is too large"}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		w.Header().Set("Connection", "close")
		return nil, &refusal{status: http.StatusRequestTimeout, reason: "the body did not come in time"}
	}
	return nil, &refusal{status: http.StatusBadRequest, reason: "the body ended before its end"}
}

// watched keeps the error of a reader, to tell it from others.
type watched struct {
	io.Reader

	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}
