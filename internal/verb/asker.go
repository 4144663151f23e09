package verb

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

// Asker asks people.
type Asker struct {
	In  io.Reader
	Out io.Writer
}

// Printf writes to the person who is asked.
func (q *Asker) Printf(format string, arguments ...any) { fmt.Fprintf(q.Out, format, arguments...) }

// Confirm asks a question whose answer is yes or no; an empty answer is no.
func (q *Asker) Confirm(ctx context.Context, question string) (bool, error) {
	answer, err := q.Question(ctx, question+" [y/N]")
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)), err
}

// Question asks for a text.
func (q *Asker) Question(ctx context.Context, question string) (string, error) {
	q.Printf("%s ", question)
	answer, err := q.Line(ctx)
	if errors.Is(err, io.EOF) {
		err = errNoAnswer
	}
	return answer, err
}

// Line reads a line, byte by byte: what stands behind it is for the next question. When ctx ends first, it is lost.
func (q *Asker) Line(ctx context.Context) (string, error) {
	type answer struct {
		text string
		err  error
	}
	given := make(chan answer, 1)
	go func() {
		var line []byte
		for one := make([]byte, 1); ; {
			n, err := q.In.Read(one)
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
