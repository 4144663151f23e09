package content_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5/pgxpool"

	contentstore "github.com/parley-broker/parley/internal/store/content"
	"github.com/parley-broker/parley/parleytest"
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), "select parley_store.add_system('mail')"); err != nil {
		t.Fatal(err)
	}
	return pool
}

func holder(n int64) contentstore.Holder { return contentstore.Holder{System: "mail", Number: n} }

func random(n int) []byte {
	body := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = source.Read(body)
	return body
}

// read gives the whole body, by Read in odd pieces and by WriteTo.
func read(t *testing.T, pool *pgxpool.Pool, id int64) []byte {
	t.Helper()
	pieces, err := contentstore.Open(t.Context(), pool, id, holder(1))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(iotest.HalfReader(struct{ io.Reader }{pieces}))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := contentstore.Open(t.Context(), pool, id, holder(1))
	if err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	if _, err := io.Copy(&copied, whole); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(copied.Bytes(), body) || whole.Info().Bytes != int64(len(body)) {
		t.Errorf("WriteTo gives %d bytes and Read %d", copied.Len(), len(body))
	}
	return body
}

var lengths = []int{
	0, 1, contentstore.SmallBytes, contentstore.SmallBytes + 1, contentstore.ChunkBytes - 1, contentstore.ChunkBytes, contentstore.ChunkBytes + 1,
	2 * contentstore.ChunkBytes, 9*contentstore.ChunkBytes + 17,
}

// What is written comes back, however it is written: by Write, by ReadFrom, or by both.
func TestBodiesComeBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for _, n := range lengths {
		body := random(n)
		for name, write := range map[string]func(*contentstore.Writer) error{
			"Write": func(w *contentstore.Writer) error {
				_, err := io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{bytes.NewReader(body)})
				return err
			},
			"ReadFrom": func(w *contentstore.Writer) error {
				n, err := w.ReadFrom(iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(body))))
				if n != int64(len(body)) {
					t.Errorf("ReadFrom of %d bytes gives %d", len(body), n)
				}
				return err
			},
			"both": func(w *contentstore.Writer) error {
				if _, err := w.Write(body[:n/3]); err != nil {
					return err
				}
				if _, err := w.ReadFrom(bytes.NewReader(body[n/3 : n/2])); err != nil {
					return err
				}
				_, err := w.Write(body[n/2:])
				return err
			},
		} {
			w := contentstore.NewWriter(t.Context(), pool, holder(1))
			if err := write(w); err != nil {
				t.Fatalf("%s of %d bytes: %v", name, n, err)
			}
			info, err := w.Finish()
			if err != nil {
				t.Fatalf("%s of %d bytes: %v", name, n, err)
			}
			if !bytes.Equal(read(t, pool, info.ID), body) {
				t.Errorf("%s of %d bytes gives another body", name, n)
			}
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("a finished body takes more")
			}
		}
	}
}

// A body in a transaction that rolls back is not there, and one whose source fails is not finished.
func TestBodiesThatFail(t *testing.T) {
	t.Parallel()
	pool := database(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := contentstore.NewWriter(t.Context(), tx, holder(1))
	if _, err := w.ReadFrom(bytes.NewReader(random(2 * contentstore.ChunkBytes))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var stored int
	if err := pool.QueryRow(t.Context(), "select count(*) from parley_store.contents").Scan(&stored); err != nil || stored != 0 {
		t.Errorf("%d bodies are there after a rollback, %v", stored, err)
	}

	// A connection that is cut off gives io.ErrUnexpectedEOF, which is no end.
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF} {
		for _, size := range []int{0, 100, 3 * contentstore.ChunkBytes, 3*contentstore.ChunkBytes + 1} {
			w = contentstore.NewWriter(t.Context(), pool, holder(2))
			source := io.MultiReader(bytes.NewReader(random(size)), iotest.ErrReader(broken))
			if _, err := w.ReadFrom(source); !errors.Is(err, broken) {
				t.Errorf("ReadFrom of a source that fails after %d bytes gives %v", size, err)
			}
			if _, err := w.Finish(); !errors.Is(err, broken) {
				t.Errorf("Finish gives %v", err)
			}
		}
	}
}

func TestOnlyWhoRefersReads(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w := contentstore.NewWriter(t.Context(), pool, holder(1))
	if _, err := w.ReadFrom(bytes.NewReader(random(9 * contentstore.ChunkBytes))); err != nil {
		t.Fatal(err)
	}
	info, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contentstore.Open(t.Context(), pool, info.ID, holder(2)); !errors.Is(err, contentstore.ErrNotReferred) {
		t.Errorf("an outsider gets %v", err)
	}
	if err := contentstore.Share(t.Context(), pool, info.ID, holder(2), 3); !errors.Is(err, contentstore.ErrNotReferred) {
		t.Errorf("an outsider shares: %v", err)
	}
	if err := contentstore.Share(t.Context(), pool, info.ID, holder(1), 2); err != nil {
		t.Fatal(err)
	}
	r, err := contentstore.Open(t.Context(), pool, info.ID, holder(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if n, err := contentstore.Release(t.Context(), pool, "mail", []int64{1, 2}); n != 1 || err != nil {
		t.Errorf("%d bodies went, %v", n, err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, contentstore.ErrNotReferred) {
		t.Errorf("reading on after the release gives %v", err)
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w := contentstore.NewWriter(t.Context(), pool, holder(1))
	if _, err := w.Write(random(2 * contentstore.ChunkBytes)); err != nil {
		t.Fatal(err)
	}
	info, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{
		"update parley_store._p_content_chunk set body = set_byte(body, 7, 1 + get_byte(body, 7) % 200) where number = 1",
		"delete from parley_store._p_content_chunk where number = 0",
	} {
		if _, err := pool.Exec(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		r, err := contentstore.Open(t.Context(), pool, info.ID, holder(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, contentstore.ErrDamaged) {
			t.Errorf("after %s: %v", damage, err)
		}
	}
}
