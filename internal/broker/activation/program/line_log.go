package program

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"
)

const (
	// lineBytesMax bounds a line in the log; what is longer is cut.
	lineBytesMax = 8 << 10
	// linesPerSecondMax bounds what one stream of one instance writes into the log; what is more is counted.
	linesPerSecondMax = 200
)

// lineLog writes what a program prints to the log, line by line.
type lineLog struct {
	logger     *slog.Logger
	now        func() time.Time
	window     time.Time // a second, and how many lines came in it
	lines      int
	suppressed int
	lastLine   string
}

func newLineLog(logger *slog.Logger) *lineLog { return &lineLog{logger: logger, now: time.Now} }

// copy logs what it reads until there is no more. It reads on whatever the program prints, so that the program is never held up
// for good.
func (l *lineLog) copy(from io.Reader) {
	in := bufio.NewReaderSize(from, lineBytesMax)
	for {
		line, err := in.ReadSlice('\n')
		isCut := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 {
			l.log(line, isCut)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			l.reportSuppressed()
			return
		}
	}
}

func (l *lineLog) log(line []byte, isCut bool) {
	text := strings.ToValidUTF8(string(bytes.TrimRight(line, "\r\n")), "\uFFFD")
	if strings.TrimSpace(text) != "" {
		l.lastLine = text
	}
	if now := l.now(); now.Sub(l.window) >= time.Second {
		l.reportSuppressed()
		l.window, l.lines = now, 0
	}
	if l.lines >= linesPerSecondMax {
		l.suppressed++
		return
	}
	l.lines++
	if isCut {
		l.logger.Info("program printed", "line", text, "cut_after_bytes", lineBytesMax)
		return
	}
	l.logger.Info("program printed", "line", text)
}

func (l *lineLog) reportSuppressed() {
	if l.suppressed > 0 {
		l.logger.Warn("program prints too much; lines were left out", "lines", l.suppressed, "lines_per_second_max", linesPerSecondMax)
		l.suppressed = 0
	}
}

// last is the last line that says something, for the error of a program that failed; call it when copy has ended.
func (l *lineLog) last() string {
	if len(l.lastLine) > 500 {
		return strings.ToValidUTF8(l.lastLine[:500], "") + "…"
	}
	return l.lastLine
}
