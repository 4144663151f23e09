package flatfile_test

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

const (
	fiveFields = `<xs:element name="File"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence><xs:element name="Line" maxOccurs="unbounded"><b:recordInfo child_delimiter_type="char" child_delimiter=";"/>
<xs:complexType><xs:sequence><xs:element name="Id" type="xs:int"/><xs:element name="Name" type="xs:string"/><xs:element name="Street" type="xs:string"/>
<xs:element name="City" type="xs:string"/><xs:element name="Day" type="xs:date"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>`
	fiveValues = "4711;Ann Example;12 Long Acre;Old Town;2026-11-28\n"
)

// discarded counts messages and keeps nothing.
type discarded struct{ bytes int64 }

func (d *discarded) Write(p []byte) (int, error)    { d.bytes += int64(len(p)); return len(p), nil }
func (d *discarded) Begin(int64) (io.Writer, error) { return d, nil }
func (d *discarded) End(interchange.Message) error  { return nil }
func (d *discarded) Abort(int64) error              { return nil }
func (d *discarded) Bad(interchange.Bad) error      { return errors.New("nothing is bad") }

// BenchmarkFlatFile is held against BenchmarkEncodingCSV of the same run: a delimited file becomes XML, and is read as rows.
func BenchmarkFlatFile(b *testing.B) {
	file := strings.Repeat(fiveValues, 20_000)
	s := compiled(b, fiveFields, flatfile.Settings{})
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := s.Disassemble(b.Context(), strings.NewReader(file), flatfile.ReadSettings{}, &discarded{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingCSV(b *testing.B) {
	file := strings.Repeat(fiveValues, 20_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		r := csv.NewReader(strings.NewReader(file))
		r.Comma = ';'
		for {
			if _, err := r.Read(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// lines without an end, up to a size.
type manyLines struct {
	left int64
	at   int
}

func (m *manyLines) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		n += copy(p[n:], fiveValues[m.at:])
		m.at = 0
	}
	n = int(min(int64(n), m.left))
	n -= n % len(fiveValues)
	m.left -= int64(n)
	if n == 0 {
		m.left = 0
		return 0, io.EOF
	}
	return n, nil
}

// peak samples the heap until it is stopped.
func peak(stop <-chan struct{}) *atomic.Uint64 {
	var most atomic.Uint64
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapInuse))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return &most
}

// One message of a gigabyte is read and written in 128 MB; without PARLEY_TEST_LONG one of 32 MB.
func TestALargeFileIsReadAndWrittenInBoundedMemory(t *testing.T) {
	size := int64(32 << 20)
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		size = 1 << 30
	}
	runtime.GC()
	stop := make(chan struct{})
	most := peak(stop)
	s := compiled(t, fiveFields, flatfile.Settings{})
	read, write := io.Pipe()
	written := &discarded{}
	done := make(chan error, 1)
	go func() {
		a, err := s.NewAssembler(written, flatfile.WriteSettings{})
		if err == nil {
			err = a.Write(t.Context(), s, read)
		}
		if err == nil {
			err = a.Close()
		}
		done <- errors.Join(err, read.CloseWithError(err))
	}()
	_, err := s.Disassemble(t.Context(), &manyLines{left: size}, flatfile.ReadSettings{}, piped{write})
	if err = errors.Join(err, write.CloseWithError(err), <-done); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if want := size - size%int64(len(fiveValues)); written.bytes < want-1<<20 {
		t.Errorf("%d bytes were written of %d", written.bytes, want)
	}
	t.Logf("%d MB were read and written again with %d MB of heap", size>>20, most.Load()>>20)
	if most.Load() > 128<<20 {
		t.Errorf("it took %d MB of heap", most.Load()>>20)
	}
}

// piped gives the one message to a pipe.
type piped struct{ w *io.PipeWriter }

func (p piped) Begin(int64) (io.Writer, error) { return p.w, nil }
func (p piped) End(interchange.Message) error  { return nil }
func (p piped) Abort(int64) error              { return nil }
func (p piped) Bad(interchange.Bad) error      { return errors.New("nothing is bad") }
