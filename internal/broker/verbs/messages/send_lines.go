package messages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-broker/parley"
)

// A batch goes to the database in calls of so many lines or bytes, whichever comes first.
const (
	batchLines = 10_000
	batchBytes = 8 << 20
)

// sendLines sends each line as a message, in order. The newline is no part of it; an empty line is a message without body.
func sendLines(ctx context.Context, db parley.DB, handle parley.UUID, messageType string, source io.Reader) (sent int, err error) {
	var bodies [][]byte
	bytesHeld := 0
	flush := func() error {
		if len(bodies) == 0 {
			return nil
		}
		if err := parley.SendBatch(ctx, db, handle, messageType, bodies); err != nil {
			return err
		}
		sent += len(bodies)
		bodies, bytesHeld = nil, 0
		return nil
	}
	lines := bufio.NewReader(source)
	for atEnd := false; !atEnd; {
		line, err := lines.ReadBytes('\n')
		atEnd = errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return sent, fmt.Errorf("read the lines: %w", err)
		}
		if !atEnd || len(line) > 0 {
			bodies = append(bodies, bytes.TrimSuffix(line, []byte("\n")))
			bytesHeld += len(line)
		}
		if atEnd || len(bodies) >= batchLines || bytesHeld >= batchBytes {
			if err := flush(); err != nil {
				return sent, err
			}
		}
	}
	return sent, nil
}
