package server // The sent bytes of a body are not exported.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A body of fewer or more bytes than its message has is no whole one, whichever way it is read.
func TestABodyOfAnotherSizeIsNoWholeOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size, has int64
		isWhole   bool
	}{{100_000, 100_000, true}, {100_000, 99_999, false}, {100_000, 100_001, false}, {0, 0, true}, {0, 1, false}, {1, 0, false}} {
		text := strings.Repeat("x", int(c.has))
		for name, opened := range map[string]io.ReadCloser{
			"in memory": writing{bytes.NewReader([]byte(text))}, "by reading": struct{ io.ReadCloser }{writing{bytes.NewReader([]byte(text))}},
		} {
			body := &sizedBody{ReadCloser: opened, size: c.size}
			written, err := body.WriteTo(io.Discard)
			if isWhole := err == nil && written == c.has; isWhole != c.isWhole || err != nil && !isIncomplete(err) {
				t.Errorf("%d bytes of %d, %s: %d, %v", c.has, c.size, name, written, err)
			}
		}
	}
}

// writing is a body in memory.
type writing struct{ *bytes.Reader }

func (writing) Close() error { return nil }

// A body is gone with its message, which nobody misses, or a part of it is missing, which somebody has to see to.
func TestABodyIsGoneOrIncomplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                  error
		isGone, isIncomplete bool
	}{
		{&pgconn.PgError{Code: "PS003"}, true, false},
		{&pgconn.PgError{Code: "PS010"}, false, true},
		{&pgconn.PgError{Code: "57014"}, false, false},
		{fmt.Errorf("x: %w", io.ErrUnexpectedEOF), false, true},
		{io.EOF, false, false},
		{errors.New("no connection"), false, false},
		{nil, false, false},
	} {
		if isGone(c.err) != c.isGone || isIncomplete(c.err) != c.isIncomplete {
			t.Errorf("%v: gone %v, incomplete %v", c.err, isGone(c.err), isIncomplete(c.err))
		}
	}
}
