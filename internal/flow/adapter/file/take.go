package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// inMemory is up to which size a file is kept in memory; a larger one is read twice, for its hash and for its body.
const inMemory = 1 << 20

// candidate is a file that was read. It stays open until it is removed, so that no other one gets its number meanwhile.
type candidate struct {
	found
	file  *os.File
	entry entry
	input adapter.Input
}

// batch reads files until there are enough for one transaction, and gives the rest. A file that cannot be read is postponed.
func (r *receiver) batch(ctx context.Context, b *box, files []found) (batch []candidate, rest []found) {
	var size int64
	for n, f := range files {
		if len(batch) > 0 && (len(batch) == r.settings.BatchCount || size+f.Size > r.settings.BatchBytes) || ctx.Err() != nil {
			return batch, files[n:]
		}
		c, err := r.read(ctx, b, f)
		if err != nil {
			r.postpone(f, err)
			continue
		}
		batch = append(batch, c)
		size += f.Size
	}
	return batch, nil
}

// read reads a file, or its hash where it is large.
func (r *receiver) read(ctx context.Context, b *box, f found) (c candidate, err error) {
	c = candidate{found: f, entry: entry{Path: f.path, identity: f.identity}}
	if !utf8.ValidString(f.path) {
		c.entry.Path, c.entry.Raw = strconv.QuoteToASCII(f.path), []byte(f.path)
	}
	c.input.Promoted = map[string]any{"SourceFileName": strings.ToValidUTF8(f.name(), "\uFFFD")}
	file, err := b.open(f)
	if err != nil {
		return c, err
	}
	c.file = file
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	sum := sha256.New()
	if f.Size <= inMemory {
		var body bytes.Buffer
		body.Grow(int(f.Size) + bytes.MinRead)
		_, err = io.Copy(io.MultiWriter(&body, sum), io.LimitReader(file, f.Size+1))
		c.input.Body, c.input.Size = body.Bytes(), f.Size
	} else {
		_, err = io.Copy(sum, &cancelled{ctx, file})
		c.input.Size = f.Size
		c.input.Open = func(ctx context.Context) (io.ReadCloser, error) { return r.reopen(ctx, f, c.entry.SHA256) }
	}
	if err != nil {
		return c, fmt.Errorf("read the file: %w", err)
	}
	if err := unchanged(file, f); err != nil {
		return c, err
	}
	c.entry.SHA256 = hex.EncodeToString(sum.Sum(nil))
	c.input.Key, c.input.Entry = c.entry.key(), c.entry.encoded()
	if f.Size == 0 && r.settings.Empty == suspendEmpty {
		c.input.Failure = &adapter.Failure{
			Code: "receive.empty", Permanent: true, Err: fmt.Errorf("the file %s is empty", path.Join(r.folder, c.entry.Path)),
		}
	}
	return c, nil
}

// unchanged returns an error when a file is not any more what was found.
func unchanged(file *os.File, f found) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if !identify(info).isSame(f.identity) {
		return errChanged
	}
	return nil
}

// longestPath is how many bytes of a path a key has; of a longer one it has the hash.
const longestPath = 600

// key is under which the ledger knows a file. It has all by which a file is told from another of that name, so that the same content that
// comes again, under the same name and with the same time of its last writing, is new.
func (e entry) key() string {
	name := e.Path
	if len(name) > longestPath {
		sum := sha256.Sum256([]byte(e.file()))
		name = "sha256:" + hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s:%d:%d:%d:%s", e.SHA256, e.Size, e.Modified, e.Changed, name)
}

// reopen gives a large file from its beginning. Its end is an error when it is not the file of which the hash was made.
func (r *receiver) reopen(ctx context.Context, f found, sum string) (io.ReadCloser, error) {
	b, err := openBox(r.permission, r.folder, "")
	if err != nil {
		return nil, err
	}
	defer b.close()
	file, err := b.open(f)
	if err != nil {
		return nil, err
	}
	return &checked{file: file, in: &cancelled{ctx, file}, found: f, sum: sum, hash: sha256.New()}, nil
}

// cancelled is a file of which reading ends with a context.
type cancelled struct {
	ctx  context.Context //nolint:containedctx // it is that of the one who reads
	file *os.File
}

func (c *cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.file.Read(p)
}

// checked is a file whose hash is known.
type checked struct {
	file  *os.File
	in    io.Reader
	found found
	sum   string
	hash  hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && (unchanged(c.file, c.found) != nil || hex.EncodeToString(c.hash.Sum(nil)) != c.sum) {
		return n, errChanged
	}
	return n, err
}

func (c *checked) Close() error { return c.file.Close() }

// take gives a batch to the intake and removes what was taken. When it fails as a whole its files are tried one by one, so that none blocks
// the others; an error is returned when it was none of theirs.
func (r *receiver) take(ctx context.Context, in adapter.Intake, b *box, batch []candidate) error {
	defer func() {
		for _, c := range batch {
			_ = c.file.Close()
		}
	}()
	return r.takeEach(ctx, in, b, r.removeEmpty(b, batch))
}

func (r *receiver) takeEach(ctx context.Context, in adapter.Intake, b *box, batch []candidate) error {
	var err error
	if batch, err = r.new(ctx, in, b, batch); err != nil || len(batch) == 0 {
		return err
	}
	if err = r.takeAll(ctx, in, b, batch); err == nil || ctx.Err() != nil {
		return err
	}
	var failed, taken int
	for _, c := range batch {
		one := err
		if len(batch) > 1 {
			one = r.takeAll(ctx, in, b, []candidate{c})
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case one == nil:
			taken++
			continue
		}
		r.postpone(c.found, one)
		if !errors.Is(one, errChanged) && !errors.Is(one, fs.ErrNotExist) {
			failed++
			err = one
		}
		if taken == 0 && failed == enough {
			break
		}
	}
	if taken == 0 && failed > 0 {
		return err
	}
	return nil
}

// enough is how many files fail, one after the other, until the fault is held to be that of the intake.
const enough = 3

// new leaves out of a batch with large files those that the ledger has, so that they are not stored once more, and removes them.
func (r *receiver) new(ctx context.Context, in adapter.Intake, b *box, batch []candidate) ([]candidate, error) {
	var keys []string
	for _, c := range batch {
		if c.input.Open != nil {
			keys = append(keys, c.input.Key)
		}
	}
	if keys == nil {
		return batch, nil
	}
	known, err := in.Known(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	var news, olds []candidate
	for _, c := range batch {
		if known[c.input.Key] {
			olds = append(olds, c)
		} else {
			news = append(news, c)
		}
	}
	r.removeTaken(ctx, in, b, olds)
	return news, nil
}

func (r *receiver) takeAll(ctx context.Context, in adapter.Intake, b *box, batch []candidate) error {
	inputs := make([]adapter.Input, len(batch))
	for n, c := range batch {
		inputs[n] = c.input
	}
	// An input was taken, now or before, with every outcome.
	if _, err := in.Take(ctx, inputs); err != nil {
		return err
	}
	r.removeTaken(ctx, in, b, batch)
	return nil
}

// removeEmpty removes the empty files of a batch where a setting says so.
func (r *receiver) removeEmpty(b *box, batch []candidate) []candidate {
	if r.settings.Empty != removeEmpty {
		return batch
	}
	var rest []candidate
	for _, c := range batch {
		if c.Size > 0 {
			rest = append(rest, c)
			continue
		}
		r.logger.Warn("an empty file is removed", slog.String("file", path.Join(r.folder, c.path)))
		if err := r.remove(b, c.entry, c.file); err != nil {
			r.postpone(c.found, err)
		}
	}
	return rest
}
