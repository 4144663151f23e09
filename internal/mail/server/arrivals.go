package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/spool"
	"github.com/parley-broker/parley/internal/pgdb"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

const (
	// smallBody is the size up to which a body travels with its envelope, in bytes; one of up to wholeBody is a statement of its own, larger
	// ones are written in chunks.
	smallBody, wholeBody = 128 << 10, 2 << 20
	// chunkSize is the size of a chunk, in bytes.
	chunkSize = 1 << 20
)

// arrivals accepts messages that have arrived.
type arrivals struct {
	pool   *pgxpool.Pool
	bodies *bodyCache
	// accepted is called after each commit.
	accepted func()
	// committed is called with how long each commit took; nil for none.
	committed func(time.Duration)
}

// accept stores a batch in one transaction. When it returns without an error the messages are durable.
func (a *arrivals) accept(ctx context.Context, batch []groupcommit.Arrival) (ids []int64, err error) {
	kept := make([]spool.Pieces, len(batch))
	err = inTransaction(ctx, a.pool, a.observe(batch), func(tx pgx.Tx) error {
		messages := make([]mailstore.Arriving, len(batch))
		for i, arrival := range batch {
			messages[i] = mailstore.Arriving{Envelope: arrival.Envelope, Size: arrival.Body.Size()}
			if kept[i], err = a.body(ctx, tx, arrival, &messages[i]); err != nil {
				return err
			}
		}
		ids, err = mailstore.Accept(ctx, tx, messages)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store messages that have arrived: %w", err)
	}
	for i, id := range ids {
		if kept[i] != nil {
			a.bodies.keep(id, kept[i])
		}
	}
	a.accepted()
	return ids, nil
}

// observedBytes is how much of bodies a commit writes for which its latency counts as it is.
const observedBytes = 1 << 20

// observe gives the function that learns of the commit of a batch. How long it takes to write many megabytes says nothing about how busy
// the disk is: what counts is the time for one.
func (a *arrivals) observe(batch []groupcommit.Arrival) func(time.Duration) {
	bytes := int64(0)
	for _, arrival := range batch {
		bytes += arrival.Body.Size()
	}
	if a.committed == nil || bytes <= observedBytes {
		return a.committed
	}
	return func(took time.Duration) { a.committed(took * observedBytes / time.Duration(bytes)) }
}

// body gives a message its body, or writes that in chunks, and returns it where it is in memory.
func (a *arrivals) body(ctx context.Context, tx pgx.Tx, arrival groupcommit.Arrival, into *mailstore.Arriving) (spool.Pieces, error) {
	pieces, inMemory := arrival.Body.Pieces()
	if inMemory && pieces.Size() <= smallBody {
		pieces = spool.Pieces{pieces.Whole()}
		into.Body = pieces[0]
		a.bodies.wrote(len(pieces[0]))
		return pieces, nil
	}
	if inMemory && pieces.Size() <= wholeBody {
		pieces = spool.Pieces{pieces.Whole()}
		var err error
		into.MessageID, into.ContentID, err = mailstore.PutBody(ctx, tx, pieces[0])
		if err != nil {
			return nil, fmt.Errorf("store a body: %w", err)
		}
		return pieces, nil
	}
	id, content, err := mailstore.BeginBody(ctx, tx, chunkSize)
	if err != nil {
		return nil, fmt.Errorf("begin a body: %w", err)
	}
	into.MessageID, into.ContentID = id, content
	sum, reader, chunk := sha256.New(), arrival.Body.Reader(), make([]byte, chunkSize)
	size := int64(0)
	for number := 0; ; number++ {
		n, err := io.ReadFull(reader, chunk)
		if n > 0 {
			sum.Write(chunk[:n])
			size += int64(n)
			if err := mailstore.AppendBody(ctx, tx, content, number, chunk[:n]); err != nil {
				return nil, fmt.Errorf("write a body: %w", err)
			}
			a.bodies.wrote(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read a body: %w", err)
		}
	}
	if size != arrival.Body.Size() {
		return nil, fmt.Errorf("read a body: %w", shortBody(size, arrival.Body.Size()))
	}
	if err := mailstore.FinishBody(ctx, tx, content, size, sum.Sum(nil)); err != nil {
		return nil, fmt.Errorf("finish a body: %w", err)
	}
	return pieces, nil
}

// isAlone is whether an error may be that of one message of a batch: the server refused it, and would refuse it again.
func isAlone(err error) bool {
	code := pgdb.SQLState(err)
	return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "23") || strings.HasPrefix(code, "P")
}
