package parts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/parley-broker/parley/internal/mail/message"
)

// longestLine is how much of a line is read as a whole. Only the beginning of a longer one could be a boundary, and it is none.
const longestLine = 64 << 10

// multipart is a multipart that is open.
type multipart struct {
	boundary []byte
	number   string
	children int
	kind     string
}

// scanner goes through a message line by line. At any place it is in the header of a part, in the body of one (a leaf), or in what stands
// between and behind parts. A line ends with CR LF; the one before a boundary belongs to the boundary.
type scanner struct {
	lines   *bufio.Reader
	message *Message
	at      int64 // where the next piece begins
	open    []multipart
	parts   int

	inHeader bool
	isRoot   bool // the header is that of the message
	hasField bool // the header has begun
	number   string
	header   []byte
	isCut    bool // the header is longer than its limit
	leaf     *leaf
}

func newScanner(r io.Reader, m *Message) *scanner {
	return &scanner{lines: bufio.NewReaderSize(r, longestLine), message: m}
}

func (s *scanner) scan() error {
	s.beginPart("")
	s.isRoot = true
	startsLine, endedWithCR := true, false
	for {
		piece, err := s.lines.ReadSlice('\n')
		if len(piece) > 0 {
			if s.piece(piece, startsLine) {
				return nil
			}
			s.at += int64(len(piece))
			startsLine = bytes.HasSuffix(piece, []byte("\r\n")) || endedWithCR && len(piece) == 1 && piece[0] == '\n'
			endedWithCR = piece[len(piece)-1] == '\r'
		}
		switch {
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			s.end()
			return nil
		default:
			return fmt.Errorf("after %d bytes: %w", s.at, err)
		}
	}
}

// piece takes a line or a part of a long one, and says whether the rest is of no interest.
func (s *scanner) piece(piece []byte, startsLine bool) (isEnough bool) {
	if startsLine && len(piece) < longestLine && bytes.HasPrefix(piece, []byte("--")) {
		if depth, isLast, is := s.boundary(piece); is {
			s.endPart(true)
			return s.next(depth, isLast)
		}
	}
	if s.inHeader {
		isBlank := startsLine && bytes.Equal(piece, []byte("\r\n"))
		isContinued := !startsLine || piece[0] == ' ' || piece[0] == '\t'
		switch {
		case isBlank:
			s.endHeader(s.at + 2)
			return false
		case isContinued && s.hasField || startsLine && message.BeginsField(piece):
			s.hasField = true
			s.addHeader(piece)
			return false
		}
		// It belongs to the body.
		s.endHeader(s.at)
	}
	if s.leaf != nil {
		s.leaf.write(piece)
	}
	return false
}

func (s *scanner) addHeader(piece []byte) {
	limit := s.message.limits.PartHeader
	if s.isRoot {
		limit = s.message.limits.HeaderBytes
	}
	if s.isCut || len(s.header)+len(piece) > limit {
		if !s.isCut {
			s.isCut = true
			s.message.truncated(s.number, "HEADER_TRUNCATED")
		}
		return
	}
	s.header = append(s.header, piece...)
}

// boundary says whether a line is a boundary of a multipart that is open, and of which.
func (s *scanner) boundary(line []byte) (depth int, isLast, is bool) {
	line = bytes.TrimRight(line[2:], " \t\r\n")
	for i, open := range slices.Backward(s.open) {
		rest, has := bytes.CutPrefix(line, open.boundary)
		if has && (len(rest) == 0 || string(rest) == "--") {
			return i, len(rest) > 0, true
		}
	}
	return 0, false, false
}

// next goes on behind a boundary: with the next part, or behind the last one.
func (s *scanner) next(depth int, isLast bool) (isEnough bool) {
	for range len(s.open) - 1 - depth {
		s.message.damaged(s.open[len(s.open)-1].number, "UNCLOSED")
		s.open = s.open[:len(s.open)-1]
	}
	if isLast {
		s.open = s.open[:depth]
		return false
	}
	if s.parts >= s.message.limits.Parts {
		s.message.truncated("", "TOO_MANY_PARTS")
		return true
	}
	parent := &s.open[depth]
	parent.children++
	number := strconv.Itoa(parent.children)
	if parent.number != "" {
		number = parent.number + "." + number
	}
	s.beginPart(number)
	return false
}

func (s *scanner) beginPart(number string) {
	s.parts++
	s.inHeader, s.isRoot, s.hasField, s.isCut = true, false, false, false
	s.number, s.header = number, s.header[:0]
}

// endHeader begins the body of a part, which stands at an offset.
func (s *scanner) endHeader(offset int64) {
	s.inHeader = false
	fields, _, _ := message.ParseHeader(append(s.header, '\r', '\n'))
	if s.isRoot {
		s.message.readHeader(fields)
	}
	at := place{isFirst: true}
	if len(s.open) > 0 {
		parent := s.open[len(s.open)-1]
		at = place{kind: parent.kind, isFirst: parent.children == 1}
	}
	described := s.describe(fields, at.kind == "multipart/digest")
	if described.boundary != "" {
		if len(s.open) < s.message.limits.Depth {
			s.open = append(s.open, multipart{
				boundary: []byte(described.boundary), number: s.number, kind: described.part.Type,
			})
			return
		}
		s.message.truncated(s.number, "TOO_DEEP")
	}
	described.part.Offset = offset
	if described.part.Number == "" {
		described.part.Number = "1"
	}
	if described.hasUnknownCharset {
		s.message.damaged(described.part.Number, "UNKNOWN_CHARSET")
	}
	s.leaf = s.message.beginLeaf(described.part, at)
}

// endPart ends the part that is being read, if there is one.
func (s *scanner) endPart(isAtBoundary bool) {
	if s.inHeader {
		s.endHeader(s.at)
	}
	if s.leaf != nil {
		s.message.endLeaf(s.leaf, isAtBoundary)
		s.leaf = nil
	}
}

// end ends the message.
func (s *scanner) end() {
	s.endPart(false)
	for _, open := range slices.Backward(s.open) {
		s.message.damaged(open.number, "UNCLOSED")
	}
}
