package parts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/charset"
)

// leaf is the body of a part while it is read.
type leaf struct {
	part   Part
	held   []byte // a line end that may belong to a boundary
	coding decoder
	hash   hash.Hash
	isText bool // kept is wanted
	isCut  bool
	kept   []byte
	limit  int
}

// place says where in the message a part stands.
type place struct {
	kind    string // of the multipart, such as multipart/mixed; nothing where the part is the message
	isFirst bool   // of its multipart
}

// isBody reports whether a part that is a text can be the text of the message (RFC 8621 section 4.1.4). A name makes no attachment of it,
// unless other parts stand in front. To what HTML refers is none, and of two alternatives each is one.
func (p place) isBody(part Part) bool {
	switch {
	case part.Disposition == "attachment":
		return false
	case p.isFirst || p.kind == "multipart/alternative":
		return true
	default:
		return p.kind != "multipart/related" && part.Name == ""
	}
}

// beginLeaf begins the body of a part, and decides what it is to the message: its text, its HTML, or an attachment.
func (m *Message) beginLeaf(part Part, at place) *leaf {
	l := &leaf{part: part, hash: sha256.New(), limit: m.limits.Text}
	l.coding = decoderOf(part.Encoding, l.decoded)
	isBody := at.isBody(part)
	switch {
	case isBody && part.Type == "text/plain" && m.Parsed.Text == nil:
		m.Parsed.Text, l.isText = &l.part, true
	case isBody && part.Type == "text/html" && m.Parsed.HTML == nil:
		m.Parsed.HTML, l.isText = &l.part, true
	}
	return l
}

// write takes encoded bytes. A line end is held back until it is known what follows.
func (l *leaf) write(piece []byte) {
	tail := 0
	switch {
	case bytes.HasSuffix(piece, []byte("\r\n")):
		tail = 2
	case piece[len(piece)-1] == '\r':
		tail = 1
	case len(piece) == 1 && piece[0] == '\n' && string(l.held) == "\r":
		l.held = append(l.held, '\n')
		return
	}
	l.flush()
	l.encoded(piece[:len(piece)-tail])
	l.held = append(l.held, piece[len(piece)-tail:]...)
}

func (l *leaf) flush() {
	l.encoded(l.held)
	l.held = l.held[:0]
}

func (l *leaf) encoded(piece []byte) {
	l.part.Bytes += int64(len(piece))
	l.coding.write(piece)
}

// decoded takes decoded bytes.
func (l *leaf) decoded(piece []byte) {
	l.part.Size += int64(len(piece))
	_, _ = l.hash.Write(piece)
	if l.isText && !l.isCut {
		// Some more than the limit: line ends become shorter, and characters of other encodings longer.
		if room := 2*l.limit - len(l.kept); len(piece) > room {
			piece, l.isCut = piece[:room], true
		}
		l.kept = append(l.kept, piece...)
	}
}

// endLeaf ends the body of a part.
func (m *Message) endLeaf(l *leaf, isAtBoundary bool) {
	if !isAtBoundary {
		l.flush()
	}
	if !l.coding.end() {
		m.damaged(l.part.Number, "INVALID_ENCODING")
	}
	l.part.SHA256 = hex.EncodeToString(l.hash.Sum(nil))
	if !l.isText {
		m.Attachments = append(m.Attachments, l.part)
		return
	}
	text := m.textOf(l)
	if l.part.Type == "text/html" {
		m.HTML = &text
	} else {
		m.Text = &text
	}
}

// textOf gives the kept part of a leaf as text.
func (m *Message) textOf(l *leaf) string {
	text, problem := toUTF8(l.kept, l.part.Charset, l.isCut)
	if problem != "" {
		m.damaged(l.part.Number, problem)
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if len(text) > l.limit || l.isCut {
		text = cut(text, l.limit)
		m.truncated(l.part.Number, "TEXT_TRUNCATED")
	}
	return text
}

// toUTF8 gives bytes of a charset as text, and what was wrong with them. Bytes that were cut off may end in the middle of a character.
func toUTF8(body []byte, name string, isCut bool) (text, problem string) {
	decoded := body
	if !isUTF8(name) {
		if found := charset.Lookup(name); found == nil {
			problem = "UNKNOWN_CHARSET"
		} else if read, err := found.NewDecoder().Bytes(body); err == nil {
			decoded = read
		} else {
			problem = "INVALID_CHARACTERS"
		}
	}
	if isCut {
		decoded = wholeRunes(decoded)
	}
	text = strings.TrimPrefix(string(decoded), "\uFEFF")
	cleaned := clean(text)
	if problem == "" && (cleaned != text || strings.Contains(cleaned, "\uFFFD") && !bytes.Contains(body, []byte("\uFFFD"))) {
		problem = "INVALID_CHARACTERS"
	}
	return cleaned, problem
}

// wholeRunes takes the beginning of a character off the end of a text.
func wholeRunes(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return bytes.TrimSuffix(text, []byte("\uFFFD"))
}
