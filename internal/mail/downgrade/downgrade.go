// Package downgrade makes of a message with bytes above 127 one without, for a host that takes no others: parts become quoted-printable one
// by one, and words of the header encoded words. A reader gets the same from both messages.
//
// Sources: RFC 6152 section 3, RFC 2045 section 6, RFC 2047, RFC 2231.
package downgrade

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"slices"

	"github.com/parley-broker/parley/internal/mail/message"
)

const (
	// maximumHeader bounds the header of a message or part, in bytes, and maximumDepth how deep parts are nested.
	maximumHeader, maximumDepth = 1 << 20, 100
)

// Why a message cannot be made one without bytes above 127.
var (
	ErrAddress   = errors.New("an address in the header is not in ASCII")
	ErrStructure = errors.New("its parts are nested too deep, or have too long a header")
)

// Plan lists the changes to a message.
type Plan struct {
	// Size is that of what comes of it, in bytes.
	Size   int64
	leaves []leaf
}

// leaf describes the content of a part that has no parts in it.
type leaf struct{ isEncoded, isUTF8 bool }

// NewPlan reads a message, whose lines end with CRLF, twice. It fails with [ErrAddress], or with what the message cannot be read for.
func NewPlan(open func() (io.ReadCloser, error)) (*Plan, error) {
	plan := new(Plan)
	for _, isFirst := range []bool{true, false} {
		source, err := open()
		if err != nil {
			return nil, err
		}
		reader := plan.Reader(source)
		reader.(*converter).isCounting = isFirst
		plan.Size, err = io.Copy(io.Discard, reader)
		_ = source.Close()
		if err != nil {
			return nil, fmt.Errorf("convert it: %w", err)
		}
	}
	return plan, nil
}

// Reader gives the converted form of the message that the plan was made of.
func (p *Plan) Reader(source io.Reader) io.Reader {
	return &converter{plan: p, source: bufio.NewReaderSize(source, 64<<10), isHeader: true}
}

// body names the change to the lines of a body.
type body int

const (
	asItIs   body = iota
	encoded       // to quoted-printable
	patched       // quoted-printable that has bytes above 127 all the same
	replaced      // what nobody reads, or what may have no encoding
)

// converter reads a message line by line.
type converter struct {
	plan       *Plan
	source     *bufio.Reader
	isCounting bool // what stands in the parts is found out
	out        bytes.Buffer
	err        error

	isHeader   bool
	isInner    bool // the header is not that of the whole message
	header     []byte
	boundaries []string
	body       body
	isPart     bool // the lines are those of a leaf
	leaf       int  // the number of the next one
}

// Read gives the next bytes.
func (c *converter) Read(into []byte) (int, error) {
	for c.out.Len() == 0 {
		if c.err != nil {
			return 0, c.err
		}
		line, err := c.line()
		if len(line) > 0 {
			if failed := c.take(line); failed != nil {
				err = failed
			}
		}
		if errors.Is(err, io.EOF) && c.isHeader && len(c.header) > 0 {
			c.out.Write(c.header) // Its end is missing: it is given back as it is, but for what cannot be sent.
			replace(c.out.Bytes())
		}
		c.err = err
	}
	return c.out.Read(into)
}

// line reads a line, or what of a very long one fits in memory.
func (c *converter) line() ([]byte, error) {
	line, err := c.source.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	return line, err
}

func (c *converter) take(line []byte) error {
	if at := c.boundaryAt(line); at >= 0 {
		c.endHeader()
		isLast := bytes.HasPrefix(line[2+len(c.boundaries[at]):], []byte("--"))
		c.boundaries = c.boundaries[:at+1]
		if isLast {
			c.boundaries = c.boundaries[:at]
		}
		c.isHeader, c.isInner, c.isPart, c.body = !isLast, true, false, replaced
		c.out.Write(line)
		return nil
	}
	if c.isHeader {
		if c.header = append(c.header, line...); len(c.header) > maximumHeader {
			return ErrStructure
		}
		if string(line) == "\r\n" {
			return c.begin()
		}
		return nil
	}
	c.lineOfBody(line)
	return nil
}

func (c *converter) lineOfBody(line []byte) {
	if len(line) == 0 {
		return
	}
	if c.isPart && c.isCounting {
		c.count(line)
	}
	c.write(line)
}

// endHeader gives back a header that a boundary ends.
func (c *converter) endHeader() {
	c.out.Write(replace(c.header))
	c.header = c.header[:0]
}

// boundaryAt is the number of the boundary that a line is, or -1.
func (c *converter) boundaryAt(line []byte) int {
	if !bytes.HasPrefix(line, []byte("--")) {
		return -1
	}
	for at, boundary := range slices.Backward(c.boundaries) {
		rest, is := bytes.CutPrefix(line[2:], []byte(boundary))
		if is && (len(bytes.TrimRight(rest, " \t\r\n")) == 0 || string(bytes.TrimRight(rest, " \t\r\n")) == "--") {
			return at
		}
	}
	return -1
}

// begin writes a header, and says what is done to what stands behind it.
func (c *converter) begin() error {
	header, length, _ := message.ParseHeader(c.header)
	rest := bytes.Clone(c.header[length:])
	c.isHeader, c.isPart, c.body = false, false, asItIs
	kind, boundary := typeOf(header)
	encoding := encodingOf(header)
	switch {
	case kind == multipart && boundary != "":
		if len(c.boundaries) >= maximumDepth {
			return ErrStructure
		}
		c.boundaries = append(c.boundaries, boundary)
		c.body = replaced
		header = asSevenBit(header, encoding)
	case kind == whole && encoding != "base64" && encoding != "quoted-printable":
		if c.boundaries = append(c.boundaries, "\x00"); len(c.boundaries) > maximumDepth { // no line is that
			return ErrStructure
		}
		header = asSevenBit(header, encoding)
		c.isHeader = true
	case kind == status:
		c.body = replaced
		header = asSevenBit(header, encoding)
	default:
		found := c.nextLeaf()
		switch {
		case !found.isEncoded:
			header = asSevenBit(header, encoding)
		case encoding == "quoted-printable":
			c.body = patched
		case encoding == "base64":
			c.body = replaced
		default:
			c.body = encoded
			header = c.asEncoded(header, found)
		}
	}
	written, err := ascii(header)
	if err != nil {
		return err
	}
	c.out.Write(written)
	c.header = c.header[:0]
	c.isInner = !c.isHeader                                     // A message within has a header of its own.
	for line := range bytes.SplitAfterSeq(rest, []byte("\n")) { // A line that is no field ended the header.
		c.lineOfBody(line)
	}
	return nil
}

// nextLeaf is the content of the part that begins. While that is found out, nothing is done to it.
func (c *converter) nextLeaf() leaf {
	c.isPart = true
	if c.isCounting {
		c.plan.leaves = append(c.plan.leaves, leaf{isUTF8: true})
		return leaf{}
	}
	c.leaf++
	if c.leaf > len(c.plan.leaves) {
		return leaf{}
	}
	return c.plan.leaves[c.leaf-1]
}

// count finds out what stands in a part.
func (c *converter) count(line []byte) {
	found := &c.plan.leaves[len(c.plan.leaves)-1]
	lines := message.LinesOf(line)
	found.isEncoded = found.isEncoded || lines.IsEightBit || lines.AreTooLong()
	found.isUTF8 = found.isUTF8 && isUTF8(line)
}

// write writes lines of a body.
func (c *converter) write(line []byte) {
	switch c.body {
	case asItIs:
		c.out.Write(line)
	case replaced:
		c.out.Write(replace(line))
	case patched:
		for _, b := range line {
			if b > 0x7f {
				fmt.Fprintf(&c.out, "=%02X", b)
			} else {
				c.out.WriteByte(b)
			}
		}
	case encoded:
		text, isWhole := bytes.CutSuffix(line, []byte("\r\n"))
		w := quotedprintable.NewWriter(&c.out)
		w.Binary = true
		_, _ = w.Write(text) // into memory
		_ = w.Close()
		if isWhole {
			c.out.WriteString("\r\n")
		} else {
			c.out.WriteString("=\r\n") // The line goes on, or has no end.
		}
	}
}

// replace puts question marks in the places of bytes above 127.
func replace(line []byte) []byte {
	for i, b := range line {
		if b > 0x7f {
			line[i] = '?'
		}
	}
	return line
}
