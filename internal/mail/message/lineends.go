package message

import "bytes"

// LineEnds makes every line end of what is written to it CRLF, and hands it on. It is for files, which have the line ends of their system.
type LineEnds struct {
	Write func(p []byte)
	hadCR bool
}

// Add takes a piece of text.
func (l *LineEnds) Add(p []byte) {
	for len(p) > 0 {
		if l.hadCR && p[0] == '\n' {
			p = p[1:]
		}
		l.hadCR = false
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			if len(p) > 0 {
				l.Write(p)
			}
			return
		}
		if i > 0 {
			l.Write(p[:i])
		}
		l.Write([]byte("\r\n"))
		l.hadCR = p[i] == '\r'
		p = p[i+1:]
	}
}
