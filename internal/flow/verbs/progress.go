package verbs

import (
	"fmt"
	"io"
	"os"
	"time"
)

// A progress shows a person how far long work is, on a terminal, in one line that changes.
type progress struct {
	out   io.Writer // nil: there is no terminal
	began time.Time
	last  time.Time
	read  int64
	count int64
}

const progressEvery = 500 * time.Millisecond

func newProgress(out io.Writer) *progress {
	p := &progress{began: time.Now()}
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.out = out
		}
	}
	p.last = p.began.Add(progressEvery) // short work shows nothing
	return p
}

func (p *progress) bytes(read int64) {
	p.read = read
	p.show()
}

func (p *progress) messages(count int64) {
	p.count = count
	p.show()
}

func (p *progress) show() {
	if p.out == nil || time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	const mega = 1e6
	read := float64(p.read) / mega
	fmt.Fprintf(p.out, "\r\x1b[K%.1f MB, %d messages, %.1f MB/s", read, p.count, read/time.Since(p.began).Seconds())
}

// clear leaves nothing of the line.
func (p *progress) clear() {
	if p.out != nil && p.last.After(p.began.Add(progressEvery)) {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
