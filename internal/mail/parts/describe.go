package parts

import (
	"errors"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

const (
	// longestBoundary is more than the standard allows: 70.
	longestBoundary = 200
	// longestParameters is how much of a field with parameters is read, in bytes.
	longestParameters = 4 << 10
	longestName       = 255 // characters of a file name
	longestToken      = 127 // bytes of a type, a charset, an encoding
)

// described is a part by its header.
type described struct {
	part     Part
	boundary string // of a multipart that has one
}

// describe reads the header of a part.
func (s *scanner) describe(fields message.Header, isInDigest bool) described {
	d := described{part: Part{Number: s.number, Type: "text/plain"}}
	if isInDigest {
		d.part.Type = "message/rfc822"
	}
	mediaType, parameters := parametersOf(fields.Value("Content-Type"))
	if kind, subtype, is := strings.Cut(mediaType, "/"); is && kind != "" && subtype != "" {
		d.part.Type = token(mediaType)
	}
	if strings.HasPrefix(d.part.Type, "multipart/") {
		if b := strings.TrimRight(parameters["boundary"], " \t"); b != "" && len(b) <= longestBoundary {
			d.boundary = b
		} else {
			s.message.damaged(s.number, "MISSING_BOUNDARY")
		}
	}
	if strings.HasPrefix(d.part.Type, "text/") {
		d.part.Charset = token(parameters["charset"])
	}
	disposition, about := parametersOf(fields.Value("Content-Disposition"))
	d.part.Disposition = token(disposition)
	d.part.Name = fileName(about["filename"])
	if d.part.Name == "" {
		d.part.Name = fileName(parameters["name"])
	}
	d.part.ContentID = clean(strings.Trim(cut(fields.Value("Content-ID"), longestName), "<> \t"))
	d.part.Encoding, _, _ = strings.Cut(token(fields.Value("Content-Transfer-Encoding")), " ")
	switch d.part.Encoding {
	case "base64", "quoted-printable", "7bit", "8bit", "binary", "":
	default:
		s.message.damaged(s.number, "UNKNOWN_ENCODING")
	}
	return d
}

// parametersOf reads a value with parameters, as far as they can be read.
func parametersOf(value string) (string, map[string]string) {
	value = cut(value, longestParameters)
	first, parameters, err := mime.ParseMediaType(value)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		// A parameter given twice, or the like: what stands in front is good, and so is the boundary.
		first, value, _ = strings.Cut(value, ";")
		first = strings.ToLower(strings.TrimSpace(first))
	}
	if len(parameters) == 0 {
		parameters = looseParameters(value)
	}
	return first, parameters
}

// looseParameters reads parameters that the standard does not allow, such as those whose values have characters that should be quoted.
func looseParameters(value string) map[string]string {
	parameters := make(map[string]string)
	for one := range strings.SplitSeq(value, ";") {
		name, given, is := strings.Cut(one, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := parameters[name]; is && !twice {
			parameters[name] = strings.Trim(strings.TrimSpace(given), `"`)
		}
	}
	return parameters
}

// token gives a short word in lower case.
func token(value string) string {
	return clean(cut(strings.ToLower(strings.TrimSpace(value)), longestToken))
}

// fileName gives the name of a file: without folders, without what a terminal or a file system takes for something else.
func fileName(name string) string {
	name = decodeWords(name)
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, clean(name))
	if runes := []rune(name); len(runes) > longestName {
		name = string(runes[:longestName])
	}
	return strings.TrimSpace(name)
}

// clean makes a text one that a database takes.
func clean(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
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
