package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sender sends messages as requests to one address.
type sender struct {
	adapter.Endpoint

	url      *url.URL
	settings sendSettings
	secrets  *secrets
	headers  map[string]template
	key      template
	places   chan struct{} // one for each request under way

	mu     sync.Mutex
	client *http.Client // made with the first message, which needs secrets
}

func newSender(e adapter.Endpoint) (*sender, error) {
	u, settings, problems := readSend(e.Address, e.Settings, anySecret)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	if _, err := e.Permission.CheckConnect(hostPort(u)); err != nil {
		return nil, err
	}
	s := &sender{
		Endpoint: e, url: u, settings: settings, secrets: newSecrets(e), headers: map[string]template{},
		places: make(chan struct{}, settings.Connections),
	}
	var err error
	if s.key, err = parseTemplate(settings.IdempotencyKey); err != nil {
		return nil, err
	}
	for name, text := range settings.Headers {
		if s.headers[name], err = parseTemplate(text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Send sends messages, several at once.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	var sending sync.WaitGroup
	for i, m := range messages {
		select {
		case s.places <- struct{}{}:
		case <-ctx.Done():
			deliveries[i].Err = fmt.Errorf("send message %d: %w", m.ID, ctx.Err())
			continue
		}
		sending.Go(func() {
			defer func() { <-s.places }()
			deliveries[i] = s.send(ctx, m)
		})
	}
	sending.Wait()
	return deliveries
}

// Close gives back the connections.
func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}

func (s *sender) send(ctx context.Context, m *adapter.Message) adapter.Delivery {
	client, err := s.http(ctx)
	if err != nil {
		return adapter.Delivery{Err: &adapter.Failure{Code: "send.transport", Err: err}}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.settings.Timeout))
	defer cancel()
	var wasSent bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { wasSent = true }})
	request, body, hidden, err := s.request(ctx, m)
	defer body.close()
	if err != nil {
		return adapter.Delivery{Err: err}
	}
	answer, err := client.Do(request)
	if err != nil {
		return adapter.Delivery{Err: s.judgeError(ctx, err, body.failure(), wasSent)}
	}
	defer answer.Body.Close()
	delivery := adapter.Delivery{}
	if delivery.Err = s.judge(answer, hidden); delivery.Err != nil {
		return delivery
	}
	if s.Responds {
		if delivery.Answer, delivery.Err = s.read(answer); delivery.Err != nil {
			return delivery
		}
	}
	if delivery.Detail, err = json.Marshal(map[string]any{
		"status": answer.StatusCode, "address": shown(answer.Request.URL),
	}); err != nil {
		delivery.Err = fmt.Errorf("write what tracking keeps: %w", err)
	}
	return delivery
}

// shown gives an address without its query, which may have a secret in it.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// judgeError gives what it means that there is no answer.
func (s *sender) judgeError(ctx context.Context, err, body error, wasSent bool) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		// It shows the address.
		err = wrapped.Err
	}
	switch {
	case body != nil:
		return body
	case errors.Is(err, errRedirect):
		return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
	case !wasSent && ctx.Err() == nil, !wasSent && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &adapter.Failure{Code: "send.unreachable", Err: fmt.Errorf("reach %s: %w", shown(s.url), err), Unreachable: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &adapter.Failure{Code: "send.timeout", Err: fmt.Errorf("no answer within %s", time.Duration(s.settings.Timeout))}
	}
	return &adapter.Failure{Code: "send.transport", Err: fmt.Errorf("the connection broke before there was an answer: %w", err)}
}

// request makes the request of a message. The caller closes the body, an error or not; hidden are the secrets of the request.
func (s *sender) request(ctx context.Context, m *adapter.Message) (r *http.Request, body *outgoing, hidden []string, err error) {
	body = &outgoing{open: func() (io.ReadCloser, error) { return m.Open(ctx) }, size: m.Size}
	header := http.Header{"User-Agent": {"Parley"}}
	for name, text := range s.headers {
		value, err := text.of(m)
		if err != nil {
			return nil, body, nil, err
		}
		if value != "" {
			header.Set(name, value)
		}
	}
	header.Set("Content-Type", s.contentType(m))
	if s.settings.IdempotencyHeader != "" {
		key, err := s.key.of(m)
		if err != nil {
			return nil, body, nil, err
		}
		header.Set(s.settings.IdempotencyHeader, key)
	}
	if hidden, err = s.authenticate(ctx, header, body); err != nil {
		return nil, body, nil, err
	}
	r, err = http.NewRequestWithContext(ctx, s.settings.Method, s.url.String(), http.NoBody)
	if err != nil {
		return nil, body, nil, errors.New("the request cannot be made of the address")
	}
	r.Header = header
	if r.ContentLength = body.size; body.size == 0 {
		r.Body, r.GetBody = http.NoBody, func() (io.ReadCloser, error) { return http.NoBody, nil }
		return r, body, hidden, nil
	}
	r.GetBody = body.read
	r.Body, err = body.read()
	return r, body, hidden, err
}

// contentType gives that of the setting, or that of the message.
func (s *sender) contentType(m *adapter.Message) string {
	switch {
	case s.settings.ContentType != "":
		return s.settings.ContentType
	case m.ContentType == "" || hasControl(m.ContentType+m.Charset):
		return "application/octet-stream"
	case m.Charset != "":
		return m.ContentType + "; charset=" + m.Charset
	}
	return m.ContentType
}

// authenticate adds what identifies us.
func (s *sender) authenticate(ctx context.Context, header http.Header, body *outgoing) (hidden []string, err error) {
	secretOf := map[string]string{"bearer": secretToken, "basic": secretPassword, "hmac": secretKey}[s.settings.Authentication]
	if secretOf == "" {
		return nil, nil
	}
	secret, err := s.secrets.get(ctx, secretOf)
	if err != nil {
		return nil, &adapter.Failure{Code: "send.transport", Err: err}
	}
	hidden = []string{secret}
	switch s.settings.Authentication {
	case "bearer":
		value := secret
		if strings.EqualFold(s.settings.BearerHeader, authorization) {
			value = "Bearer " + secret
		}
		header.Set(s.settings.BearerHeader, value)
	case "basic":
		encoded := base64.StdEncoding.EncodeToString([]byte(s.settings.User + ":" + secret))
		header.Set(authorization, "Basic "+encoded)
		hidden = append(hidden, encoded)
	default:
		return hidden, s.sign(secret, header, body)
	}
	if hasControl(secret) {
		return nil, &adapter.Failure{Code: "send.transport", Err: fmt.Errorf("the secret %s has a line break in it", secretOf)}
	}
	return hidden, nil
}

// sign adds the signature of the body, which is kept, so that what is sent is what was signed.
func (s *sender) sign(secret string, header http.Header, body *outgoing) error {
	key, err := s.settings.HMAC.key(secret)
	if err != nil {
		return &adapter.Failure{Code: "send.transport", Err: err}
	}
	if err := body.keep(); err != nil {
		return err
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	sum, err := s.settings.HMAC.sum(key, header, timestamp, body.open)
	if err != nil {
		return err
	}
	for name, value := range s.settings.HMAC.written(sum, timestamp) {
		header.Set(name, value)
	}
	return nil
}
