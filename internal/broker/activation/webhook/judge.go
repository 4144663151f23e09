package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// refusal is why messages were not accepted. Its answer about the message decides how it is counted.
type refusal struct {
	cause error
	// isAttempt: the receiver examined the message and refused it. Otherwise it was not available.
	isAttempt bool
	isFinal   bool
	retry     time.Duration // that the receiver asks for
	answer    string        // what the receiver said
}

func (r *refusal) Error() string { return r.cause.Error() }

func (r *refusal) Unwrap() error { return r.cause }

// judge reports what the status of an answer means; nil is acceptance.
func judge(answer *http.Response, now time.Time) *refusal {
	status := answer.StatusCode
	cause := fmt.Errorf("the web address answered %d %s", status, http.StatusText(status))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusGone:
		return &refusal{cause: cause, isAttempt: true, isFinal: true}
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return &refusal{cause: cause, retry: retryAfter(answer.Header.Get("Retry-After"), now)}
	}
	return &refusal{cause: cause, isAttempt: true}
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return min(longest, max(0, time.Duration(seconds)*time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(longest, max(0, at.Sub(now)))
	}
	return 0
}

// judgeError reports what it means that there is no answer. wasSent reports whether a connection was made: without one the error
// says nothing about the message, and concerns all of them. The request's own time-out is not that of ctx.
func judgeError(ctx context.Context, err error, wasSent bool, timeout time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("deliver: %w", ctx.Err())
	case !wasSent:
		return fmt.Errorf("reach the web address: %w", withoutURL(err))
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{cause: fmt.Errorf("no answer within %s", timeout)}
	}
	return &refusal{cause: fmt.Errorf("the connection broke before there was an answer: %w", withoutURL(err)), isAttempt: true}
}
