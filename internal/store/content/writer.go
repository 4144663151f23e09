package content

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultTerm is how long a body may take that is written in several transactions. After that it is removed.
const DefaultTerm = time.Hour

// A Writer takes a body in. What was written can be read once [Writer.Finish] has returned and its transaction is committed.
//
// On a pgx.Tx all of it is part of that transaction. On a connection or a pool each chunk is a transaction of its own, so that
// none is open while the body comes from a network; a body whose writer does not finish it is removed after its term.
type Writer struct {
	ctx     context.Context //nolint:containedctx // io.Writer has no place for it
	db      DB
	holder  Holder
	term    time.Duration
	hashing hashing
	buffer  []byte // what does not fill a chunk yet
	bytes   int64
	chunks  int32
	id      int64
	slot    int16
	isBegun bool
	err     error
}

// NewWriter returns a writer of a body to which a holder refers from then on. A body of up to [SmallBytes] is one statement,
// made by Finish.
func NewWriter(ctx context.Context, db DB, holder Holder) *Writer {
	return &Writer{ctx: ctx, db: db, holder: holder, term: DefaultTerm, hashing: newHashing()}
}

// Write adds to the body, and writes the chunks that are full.
func (w *Writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && w.err == nil {
		n := min(len(p), ChunkBytes-len(w.buffer))
		w.buffer = append(w.buffer, p[:n]...)
		p = p[n:]
		written += n
		if len(w.buffer) == ChunkBytes {
			w.err = w.flush()
		}
	}
	return written, w.err
}

// ReadFrom adds all that a reader gives, as one COPY: the fastest way. On a connection without a transaction it is one
// transaction as long as the reader takes: what comes from a network is spooled first, or given to Write.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	if w.err != nil {
		return 0, w.err
	}
	source := &chunkSource{writer: w, reader: r}
	before := w.bytes + int64(len(w.buffer))
	// What fits one row is not worth a COPY, and a chunk that is begun has to be filled first.
	if w.err = source.fill(); w.err != nil || source.isAtEnd {
		return w.bytes + int64(len(w.buffer)) - before, w.err
	}
	if w.err = w.begin(); w.err != nil {
		return 0, w.err
	}
	source.isFilled = true
	defer w.hashing.wait()
	columns := []string{"content_id", "number", "slot", "body"}
	if _, err := w.db.CopyFrom(w.ctx, pgx.Identifier{"parley_store", "_p_content_chunk"}, columns, source); err != nil {
		// The server says only that the COPY was broken off.
		w.err = cmp.Or(source.err, failed(err, "write chunks of a body"))
	}
	return w.bytes + int64(len(w.buffer)) - before, w.err
}

// Finish ends the body, and returns what is to be known of it.
func (w *Writer) Finish() (Info, error) {
	if w.err != nil {
		return Info{}, w.err
	}
	w.err = errors.New("the body is finished")
	if !w.isBegun && len(w.buffer) <= SmallBytes {
		info := Info{Bytes: int64(len(w.buffer)), SHA256: sha256.Sum256(w.buffer)}
		if w.buffer == nil {
			w.buffer = []byte{}
		}
		ids, err := Put(w.ctx, w.db, w.holder.System, []int64{w.holder.Number}, [][]byte{w.buffer})
		if err != nil {
			return Info{}, err
		}
		info.ID = ids[0]
		return info, nil
	}
	if err := w.flush(); err != nil {
		return Info{}, err
	}
	info := Info{ID: w.id, Bytes: w.bytes, SHA256: w.hashing.sum()}
	_, err := w.db.Exec(w.ctx, "select parley_store.finish_content($1::bigint, $2::bigint, $3::bytea)", w.id, w.bytes, info.SHA256[:])
	if err != nil {
		return Info{}, failed(err, "finish a body")
	}
	return info, nil
}

func (w *Writer) begin() (err error) {
	if w.isBegun {
		return nil
	}
	w.id, w.slot, err = begin(w.ctx, w.db, w.holder, w.term)
	w.isBegun = err == nil
	return err
}

// flush writes the buffer as a chunk.
func (w *Writer) flush() error {
	if len(w.buffer) == 0 {
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.hashing.begin(w.buffer)
	defer w.hashing.wait()
	_, err := w.db.Exec(w.ctx, "select parley_store.append_content($1::bigint, $2::integer, $3::bytea)", w.id, w.chunks, w.buffer)
	if err != nil {
		return failed(err, fmt.Sprintf("write chunk %d of a body", w.chunks))
	}
	w.count()
	return nil
}

// count takes the buffer for written, when its hash is known too.
func (w *Writer) count() {
	w.hashing.wait()
	w.bytes += int64(len(w.buffer))
	w.chunks++
	w.buffer = w.buffer[:0]
}

// chunkSource gives the rows of a COPY, one full chunk at a time; what is left at the end stays in the buffer of the writer.
type chunkSource struct {
	writer   *Writer
	reader   io.Reader
	isFilled bool // the buffer is full, and not given yet
	isGiven  bool // the buffer was given, and not counted yet
	isAtEnd  bool
	err      error
}

// fill reads until the buffer is full or the reader is at its end.
func (s *chunkSource) fill() error {
	w := s.writer
	if cap(w.buffer) < ChunkBytes {
		w.buffer = append(make([]byte, 0, ChunkBytes), w.buffer...)
	}
	// Not by io.ReadFull: its io.ErrUnexpectedEOF is that of a reader too that was cut off.
	for len(w.buffer) < ChunkBytes {
		n, err := s.reader.Read(w.buffer[len(w.buffer):ChunkBytes])
		w.buffer = w.buffer[:len(w.buffer)+n]
		if err == io.EOF { //nolint:errorlint // A reader that is at its end gives it as it is; wrapped it is a failure.
			s.isAtEnd = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the body to store: %w", err)
		}
	}
	return nil
}

// Next is of [pgx.CopyFromSource].
func (s *chunkSource) Next() bool {
	if s.isGiven {
		s.writer.count()
		s.isGiven = false
	}
	if !s.isFilled && s.err == nil && !s.isAtEnd {
		s.err = s.fill()
		s.isFilled = !s.isAtEnd
	}
	if s.err != nil || s.isAtEnd {
		return false
	}
	s.isFilled, s.isGiven = false, true
	s.writer.hashing.begin(s.writer.buffer)
	return true
}

// Values is of [pgx.CopyFromSource].
func (s *chunkSource) Values() ([]any, error) {
	return []any{s.writer.id, s.writer.chunks, s.writer.slot, s.writer.buffer}, nil
}

// Err is of [pgx.CopyFromSource].
func (s *chunkSource) Err() error { return s.err }
