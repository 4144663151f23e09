package csvfile

import "io"

// longBad is from how many bytes on a bad line is not given as bytes any more.
const longBad = 1 << 20

// lines keeps the bytes of the line that is read, for when it turns out bad.
type lines struct {
	r    io.Reader
	kept []byte
	base int64 // bytes of the text before those that are kept
}

// Read implements [io.Reader].
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.kept = append(l.kept, p[:n]...)
	if excess := len(l.kept) - 2*longBad; excess > 0 {
		l.base += int64(excess)
		l.kept = l.kept[:copy(l.kept, l.kept[excess:])]
	}
	return n, err
}

// forget drops what stands before a byte of the text.
func (l *lines) forget(before int64) {
	n := min(max(before-l.base, 0), int64(len(l.kept)))
	l.base += n
	l.kept = l.kept[n:]
}

// between gives bytes of the text, or nil where they are many.
func (l *lines) between(from, to int64) []byte {
	from, to = from-l.base, to-l.base
	if from < 0 || to < from || to > int64(len(l.kept)) || to-from > longBad {
		return nil
	}
	return l.kept[from:to]
}
