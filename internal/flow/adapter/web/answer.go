package web

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

const (
	// excerptBytesMax bounds what is kept of an answer that refuses; drainedBytesMax what is read of any, to keep its connection.
	excerptBytesMax = 2048
	drainedBytesMax = 64 << 10
	// secretBytesMin is the shortest text that is taken for a secret: a shorter one stands in any answer by chance.
	secretBytesMin = 6
	// retryAfterMax bounds for how long a receiver may ask us to wait.
	retryAfterMax = 24 * time.Hour
)

// judge gives what an answer means; nil is acceptance. hidden are texts that must not be shown.
func (s *sender) judge(answer *http.Response, hidden []string) error {
	if s.settings.Accepted.has(answer.StatusCode) && s.Responds {
		return nil
	}
	if s.settings.Accepted.has(answer.StatusCode) {
		_, _ = io.CopyN(io.Discard, answer.Body, drainedBytesMax)
		return nil
	}
	err := fmt.Errorf("the address answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if text := excerpt(answer.Body, hidden); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	if s.settings.Retried.has(answer.StatusCode) {
		return &adapter.Failure{Code: "send.transport", Err: err, RetryAfter: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
	}
	return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return min(retryAfterMax, max(0, time.Duration(seconds)*time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(retryAfterMax, max(0, at.Sub(now)))
	}
	return 0
}

// excerpt gives the begin of an answer that refuses, for people who search the cause, without secrets of the request in it.
func excerpt(body io.Reader, hidden []string) string {
	read, _ := io.ReadAll(io.LimitReader(body, drainedBytesMax))
	if bytes.IndexByte(read, 0) >= 0 {
		return ""
	}
	text := strings.ToValidUTF8(string(bytes.TrimSpace(read)), "\uFFFD")
	for _, secret := range hidden {
		if len(secret) >= secretBytesMin {
			text = strings.ReplaceAll(text, secret, "[hidden]")
		}
	}
	if len(text) > excerptBytesMax {
		text = strings.ToValidUTF8(text[:excerptBytesMax], "") + "…"
	}
	return text
}

// read reads what the address has answered. One that breaks off has been sent, and is sent again: the receiver knows it by its key.
func (s *sender) read(answer *http.Response) (*adapter.Input, error) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, s.settings.MaxAnswerBytes+1))
	if err != nil {
		return nil, &adapter.Failure{Code: "send.transport", Err: fmt.Errorf("the answer broke off: %w", err)}
	}
	if int64(len(body)) > s.settings.MaxAnswerBytes {
		return nil, &adapter.Failure{
			Code: "send.refused", Err: fmt.Errorf("the answer has more than %d bytes", s.settings.MaxAnswerBytes), Permanent: true,
		}
	}
	input := &adapter.Input{
		Body: body, Size: int64(len(body)), Promoted: map[string]any{},
		Written: map[string]any{statusProperty: strconv.Itoa(answer.StatusCode)},
	}
	// A media type that cannot be read says nothing.
	if mediaType, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil {
		input.ContentType, input.Charset = mediaType, parameters["charset"]
	}
	return input, nil
}
