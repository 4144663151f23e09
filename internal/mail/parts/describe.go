package parts

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

const (
	// longestBoundary is more than the standard allows: 70.
	longestBoundary = 200
	longestName     = 255 // characters of a file name
	longestToken    = 127 // bytes of a type, a charset, an encoding
)

// described is a part by its header.
type described struct {
	part     Part
	boundary string // of a multipart that has one

	hasUnknownCharset bool // of its name
}

// describe reads the header of a part.
func (s *scanner) describe(fields message.Header, isInDigest bool) described {
	d := described{part: Part{Number: s.number, Type: "text/plain"}}
	if isInDigest {
		d.part.Type = "message/rfc822"
	}
	mediaType, ofType := parametersOf(fields.Value("Content-Type"))
	if kind, subtype, is := strings.Cut(mediaType, "/"); is && kind != "" && subtype != "" {
		d.part.Type = token(mediaType)
	}
	if strings.HasPrefix(d.part.Type, "multipart/") {
		if b := strings.TrimRight(ofType.values["boundary"], " \t"); b != "" && len(b) <= longestBoundary {
			d.boundary = b
		} else {
			s.message.damaged(s.number, "MISSING_BOUNDARY")
		}
	}
	if strings.HasPrefix(d.part.Type, "text/") {
		d.part.Charset = token(ofType.values["charset"])
	}
	disposition, about := parametersOf(fields.Value("Content-Disposition"))
	d.part.Disposition = token(disposition)
	name, isKnown := fileName(about.values["filename"])
	if name == "" {
		name, isKnown = fileName(ofType.values["name"])
	}
	d.part.Name = name
	d.hasUnknownCharset = !isKnown || ofType.hasUnknownCharset || about.hasUnknownCharset
	d.part.ContentID = contentID(fields.Value("Content-ID"))
	encoding, _ := parametersOf(fields.Value("Content-Transfer-Encoding"))
	d.part.Encoding = token(strings.Trim(encoding, `"`))
	switch d.part.Encoding {
	case "base64", "quoted-printable", "7bit", "8bit", "binary", "":
	default:
		s.message.damaged(s.number, "UNKNOWN_ENCODING")
	}
	return d
}

// contentID gives an id without its brackets, and what is none as it is written.
func contentID(written string) string {
	written = cut(written, 4*longestName)
	if ids := message.IDs(written); len(ids) > 0 {
		written = ids[0]
	}
	return clean(strings.Trim(cut(written, longestName), "<> \t"))
}

// token gives a short word in lower case.
func token(value string) string {
	return clean(cut(strings.ToLower(strings.TrimSpace(value)), longestToken))
}

// fileName gives the name of a file: decoded, without folders, without what a terminal or a file system takes for something else. isKnown
// is false where it has an encoded word in a charset that nobody knows.
func fileName(written string) (name string, isKnown bool) {
	name, isKnown = message.DecodeWords(written)
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, clean(name))
	if runes := []rune(name); len(runes) > longestName {
		name = string(runes[:longestName])
	}
	return strings.TrimSpace(name), isKnown
}

// clean makes a text one that a database takes.
func clean(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text)) // U+FFFD for each byte that is no character
}

// cut gives at most so many bytes of a text, and no half character.
func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}
