package folder

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
	"path"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// inMemory is up to which size a file is kept in memory; a larger one is read twice, for its hash and for its body.
const inMemory = 1 << 20

// Candidate is a file that was read. It stays open until it is removed, so that no other one gets its number meanwhile.
type Candidate struct {
	Found
	Entry Entry
	Input adapter.Input
	file  File
}

// Batch reads files until there are enough for one transaction, and gives the rest. A file that cannot be read is postponed.
func (r *Receiver) Batch(ctx context.Context, b Box, files []Found) (batch []Candidate, rest []Found) {
	var size int64
	for n, f := range files {
		if len(batch) > 0 && (len(batch) == r.Settings.BatchCount || size+f.Size > r.Settings.BatchBytes) || ctx.Err() != nil {
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
func (r *Receiver) read(ctx context.Context, b Box, f Found) (c Candidate, err error) {
	c = Candidate{Found: f, Entry: newEntry(f)}
	c.Input.Promoted = map[string]any{"SourceFileName": strings.ToValidUTF8(f.Name(), "\uFFFD")}
	file, err := b.Open(f)
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
		c.Input.Body, c.Input.Size = body.Bytes(), f.Size
	} else {
		_, err = io.Copy(sum, &cancelled{ctx, file})
		c.Input.Size = f.Size
		c.Input.Open = func(ctx context.Context) (io.ReadCloser, error) { return r.reopen(ctx, f, c.Entry.SHA256) }
	}
	if err != nil {
		return c, fmt.Errorf("read the file: %w", err)
	}
	if err := file.Unchanged(f); err != nil {
		return c, err
	}
	c.Entry.SHA256 = hex.EncodeToString(sum.Sum(nil))
	c.Input.Key, c.Input.Entry = c.Entry.Key(), c.Entry.encoded()
	if f.Size == 0 && r.Settings.Empty == SuspendEmpty {
		c.Input.Failure = &adapter.Failure{
			Code: "receive.empty", Permanent: true, Err: fmt.Errorf("the file %s is empty", path.Join(r.Folder, c.Entry.Path)),
		}
	}
	return c, nil
}

// reopen gives a large file from its beginning. Its end is an error when it is not the file of which the hash was made.
func (r *Receiver) reopen(ctx context.Context, f Found, sum string) (io.ReadCloser, error) {
	b, err := r.OpenBox(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	file, err := b.Open(f)
	if err != nil {
		return nil, err
	}
	return &checked{file: file, in: &cancelled{ctx, file}, found: f, sum: sum, hash: sha256.New()}, nil
}

// cancelled is a file of which reading ends with a context.
type cancelled struct {
	ctx  context.Context //nolint:containedctx // it is that of the one who reads
	file File
}

func (c *cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.file.Read(p)
}

// checked is a file whose hash is known.
type checked struct {
	file  File
	in    io.Reader
	found Found
	sum   string
	hash  hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && (c.file.Unchanged(c.found) != nil || hex.EncodeToString(c.hash.Sum(nil)) != c.sum) {
		return n, ErrChanged
	}
	return n, err
}

func (c *checked) Close() error { return c.file.Close() }

// Take gives a batch to the intake and removes what was taken. When it fails as a whole its files are tried one by one, so that none blocks
// the others; an error is returned when it was none of theirs.
func (r *Receiver) Take(ctx context.Context, in adapter.Intake, b Box, batch []Candidate) error {
	defer func() {
		for _, c := range batch {
			_ = c.file.Close()
		}
	}()
	return r.takeEach(ctx, in, b, r.removeEmpty(b, batch))
}

func (r *Receiver) takeEach(ctx context.Context, in adapter.Intake, b Box, batch []Candidate) error {
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
			one = r.takeAll(ctx, in, b, []Candidate{c})
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case one == nil:
			taken++
			continue
		}
		r.postpone(c.Found, one)
		if !errors.Is(one, ErrChanged) && !errors.Is(one, fs.ErrNotExist) {
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
func (r *Receiver) new(ctx context.Context, in adapter.Intake, b Box, batch []Candidate) ([]Candidate, error) {
	var keys []string
	for _, c := range batch {
		if c.Input.Open != nil {
			keys = append(keys, c.Input.Key)
		}
	}
	if keys == nil {
		return batch, nil
	}
	known, err := in.Known(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	var news, olds []Candidate
	for _, c := range batch {
		if known[c.Input.Key] {
			olds = append(olds, c)
		} else {
			news = append(news, c)
		}
	}
	r.removeTaken(ctx, in, b, olds)
	return news, nil
}

func (r *Receiver) takeAll(ctx context.Context, in adapter.Intake, b Box, batch []Candidate) error {
	inputs := make([]adapter.Input, len(batch))
	for n, c := range batch {
		inputs[n] = c.Input
	}
	// An input was taken, now or before, with every outcome.
	if _, err := in.Take(ctx, inputs); err != nil {
		return err
	}
	r.removeTaken(ctx, in, b, batch)
	return nil
}

// removeEmpty removes the empty files of a batch where a setting says so.
func (r *Receiver) removeEmpty(b Box, batch []Candidate) []Candidate {
	if r.Settings.Empty != RemoveEmpty {
		return batch
	}
	var rest []Candidate
	for _, c := range batch {
		if c.Size > 0 {
			rest = append(rest, c)
			continue
		}
		r.Logger.Warn("an empty file is removed", slog.String("file", path.Join(r.Folder, c.Path)))
		if err := b.Remove(c.Entry, c.file); err != nil {
			r.postpone(c.Found, err)
		}
	}
	return rest
}
