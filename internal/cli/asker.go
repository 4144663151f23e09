package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// errNoAnswer means that the input ended before somebody answered.
var errNoAnswer = errors.New("nobody answers: use --yes with --fingerprint in scripts")

// asker asks people.
type asker struct {
	in  io.Reader
	out io.Writer
}

func (q *asker) printf(format string, arguments ...any) { fmt.Fprintf(q.out, format, arguments...) }

func (q *asker) confirm(ctx context.Context, question string) (bool, error) {
	answer, err := q.question(ctx, question+" [y/N]")
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)), err
}

func (q *asker) question(ctx context.Context, question string) (string, error) {
	q.printf("%s ", question)
	answer, err := q.line(ctx)
	if errors.Is(err, io.EOF) {
		err = errNoAnswer
	}
	return answer, err
}

// line reads a line, byte by byte: what stands behind it is for the next question. When ctx ends first, it is lost.
func (q *asker) line(ctx context.Context) (string, error) {
	type answer struct {
		text string
		err  error
	}
	given := make(chan answer, 1)
	go func() {
		var line []byte
		for one := make([]byte, 1); ; {
			n, err := q.in.Read(one)
			if n > 0 && one[0] != '\n' {
				line = append(line, one[0])
				continue
			}
			if n > 0 || (errors.Is(err, io.EOF) && len(line) > 0) {
				err = nil
			} else if err == nil {
				continue
			}
			given <- answer{strings.TrimSpace(string(line)), err}
			return
		}
	}()
	select {
	case a := <-given:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
