package value

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// styleSpace keeps white space between elements in a conversion to xml; styles 1 and 3 have it.
const styleSpace = 1

// toXML reads text or bytes as xml: a document or a fragment that is well formed, without its declaration. White space that stands
// alone between elements is dropped but in styles 1 and 3.
func toXML(v Value, to Type, style int) (Value, *fault.Error) {
	text := v.s
	if v.Kind().IsBinary() {
		switch {
		case strings.HasPrefix(text, "\xff\xfe"):
			text = DecodeUTF16(text[2:])
		case strings.HasPrefix(text, "\xef\xbb\xbf"):
			text = text[3:]
		case len(text) > 1 && text[1] == 0:
			text = DecodeUTF16(text)
		}
	}
	checked, err := wellFormed(text, style >= 0 && style&styleSpace == styleSpace)
	if err != nil {
		return Value{}, err
	}
	return Value{typ: to, set: true, s: checked}, nil
}

// wellFormed checks a fragment and gives it as it was, without declaration and insignificant white space.
func wellFormed(text string, keepsSpace bool) (string, *fault.Error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	var out strings.Builder
	depth, from := 0, int64(0)
	for {
		token, err := decoder.RawToken()
		to := decoder.InputOffset()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", xmlFault(text, to, err)
		}
		part := text[from:to]
		from = to
		switch token := token.(type) {
		case xml.ProcInst:
			if token.Target != "xml" {
				out.WriteString(part)
			}
		case xml.CharData:
			if keepsSpace || strings.Trim(part, " \t\r\n") != "" {
				out.WriteString(part)
			}
		case xml.StartElement:
			depth++
			out.WriteString(part)
		case xml.EndElement:
			depth--
			out.WriteString(part)
		default:
			out.WriteString(part)
		}
	}
	if err := matched(text); err != nil {
		return "", err
	}
	return out.String(), nil
}

// matched checks that each element is closed by its own end tag.
func matched(text string) *fault.Error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return xmlFault(text, decoder.InputOffset(), err)
		}
	}
}

// xmlFault gives the error of SQL Server that is nearest to the reader's, with line and character.
func xmlFault(text string, at int64, err error) *fault.Error {
	before := text[:min(int(at), len(text))]
	line := strings.Count(before, "\n") + 1
	character := len(before) - strings.LastIndexByte(before, '\n') - 1
	number := 9422
	switch message := err.Error(); {
	case strings.Contains(message, "unexpected EOF"):
		number = 9400
	case strings.Contains(message, "closed by"), strings.Contains(message, "unexpected end element"):
		number = 9436
	case strings.Contains(message, "entity"):
		number = 9448
	case strings.Contains(message, "quoted"):
		number = 9413
	case strings.Contains(message, "without ="), strings.Contains(message, "expected attribute name"):
		number = 9414
	case strings.Contains(message, "expected element name"):
		number = 9421
	}
	return fault.New(number, line, character)
}
