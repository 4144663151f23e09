package tcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// Bytes of any kind are no panic, and a request that is read is written as it was.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0a\x01\x00\x00\x00\x00\x00\x00\x00\x07x\x00\x00\x00\x0d\x02\x00\x00\x00\x00\x00\x00\x00\x08\x00\x01kx"), uint8(4))
	f.Add([]byte("\x00\x11\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x01"), uint8(2))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"), uint8(8))
	f.Add([]byte("one\r\ntwo\n\nthree"), uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, prefix uint8) {
		size := map[uint8]int{0: 2, 1: 4, 2: 8}[prefix%3]
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for {
			length, err := readLength(r, size)
			if err != nil || length > 1<<20 {
				break
			}
			frame, err := readBytes(r, int(length))
			if err != nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("a frame that was cut off is %v", err)
				}
				break
			}
			if q, err := parseRequest(frame); err == nil {
				written := append(appendRequest(nil, size, q, len(q.body)), q.body...)
				if !bytes.Equal(written[size:], frame) {
					t.Fatalf("%q is written as %q", frame, written[size:])
				}
			}
			if a, err := parseAnswer(frame); err == nil && len(a.why) <= longestWhy {
				if written := appendAnswer(nil, size, a); !bytes.Equal(written[size:], frame) {
					t.Fatalf("%q is written as %q", frame, written[size:])
				}
			}
		}
		lines := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for {
			line, err := readLine(lines, 20)
			if err != nil {
				break
			}
			if len(line) > 20+2 || bytes.ContainsRune(line, '\n') {
				t.Fatalf("a line is %q", line)
			}
		}
	})
}

func TestAnAnnouncedLengthAsksForNoMemory(t *testing.T) {
	var read int
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			frame, err := readBytes(bufio.NewReader(strings.NewReader("short")), largest)
			read += len(frame)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 4*atOnce || read != 0 {
		t.Errorf("%d bytes are asked for", allocated)
	}
}
