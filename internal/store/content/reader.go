package content

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-broker/parley/internal/pgdb"
)

// windowBytes is how much of a body is read by one statement and stands in memory, or one chunk where chunks are larger. A
// statement for each chunk took twice as long: each costs 0.8 ms, in which nothing moves.
const windowBytes = 8 * ChunkBytes

// A Reader gives a body, a few chunks in memory at a time. They come by a statement of their own: on a pool no connection and
// no snapshot is held while what was read goes to a network.
type Reader struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no place for it
	db     pgdb.DB
	holder Holder
	info   Info
	chunks int32
	next   int32
	window int32  // chunks of a statement
	buffer []byte // of which left is a part
	left   []byte
	read   int64
	err    error

	hashing hashing
}

// Open finds a body to which a holder refers.
//
// Errors: [ErrNotReferred].
func Open(ctx context.Context, db pgdb.DB, id int64, holder Holder) (*Reader, error) {
	r := &Reader{ctx: ctx, db: db, holder: holder, info: Info{ID: id}, hashing: newHashing()}
	var sum []byte
	var chunkBytes int32
	err := db.QueryRow(ctx, `
		select o.bytes, o.chunks, coalesce(o.chunk_bytes, $4::integer), o.sha256, o.body
		from parley_store.open_content($1::bigint, $2::text, $3::bigint) as o`,
		id, holder.System, holder.Number, ChunkBytes).Scan(&r.info.Bytes, &r.chunks, &chunkBytes, &sum, &r.left)
	if err != nil {
		return nil, failed(err, fmt.Sprintf("open content %d", id))
	}
	copy(r.info.SHA256[:], sum)
	r.window = max(1, windowBytes/chunkBytes)
	r.take(r.left)
	return r, nil
}

// Info returns what is known of the body.
func (r *Reader) Info() Info { return r.info }

// Read gives the next bytes. At the end it compares the hash.
//
// Errors: [ErrDamaged], [ErrNotReferred] when the holder has been released meanwhile.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.ready(); err != nil {
		return 0, err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// WriteTo gives all that is left to a writer, without a copy.
func (r *Reader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		err := r.ready()
		if err == io.EOF { //nolint:errorlint // it is ours, and never wrapped
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(r.left)
		written += int64(n)
		r.left = r.left[n:]
		if err != nil {
			return written, err
		}
	}
}

// ready reads chunks when nothing is left of the last.
func (r *Reader) ready() error {
	for len(r.left) == 0 && r.err == nil {
		if r.next == r.chunks {
			r.err = r.end()
			break
		}
		r.err = r.fetch()
	}
	return r.err
}

// fetch reads the chunks of a window, and hashes each while the server sends the next.
func (r *Reader) fetch() error {
	rows, err := r.db.Query(r.ctx, `
		select r.number, r.body
		from parley_store.read_content($1::bigint, $2::text, $3::bigint, $4::integer, $5::integer) as r`,
		r.info.ID, r.holder.System, r.holder.Number, r.next, r.next+r.window-1)
	if err != nil {
		return failed(err, "read a body")
	}
	defer r.hashing.wait()
	defer rows.Close()
	r.buffer = slices.Grow(r.buffer[:0], int(min(windowBytes, r.info.Bytes-r.read)))
	first := r.next
	for rows.Next() {
		var number int32
		var chunk pgtype.DriverBytes
		if err := rows.Scan(&number, &chunk); err != nil {
			return failed(err, "read a body")
		}
		if number != r.next {
			return fmt.Errorf("read chunk %d of content %d: %w", r.next, r.info.ID, ErrDamaged)
		}
		r.next++
		r.buffer = append(r.buffer, chunk...)
		r.take(r.buffer[len(r.buffer)-len(chunk):])
	}
	if err := rows.Err(); err != nil {
		return failed(err, "read a body")
	}
	if r.next == first {
		return fmt.Errorf("read chunk %d of content %d: %w", r.next, r.info.ID, ErrNotReferred)
	}
	r.left = r.buffer
	return nil
}

func (r *Reader) take(chunk []byte) {
	r.hashing.begin(chunk)
	r.read += int64(len(chunk))
}

// end says whether what was read is what was written.
func (r *Reader) end() error {
	if r.read != r.info.Bytes || r.hashing.sum() != r.info.SHA256 {
		return fmt.Errorf("content %d: %w", r.info.ID, ErrDamaged)
	}
	return io.EOF
}
