package value

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// styleSpace keeps white space between elements in a conversion to xml; styles 1 and 3 have it.
const styleSpace = 1

// toXML reads text or bytes as xml: a document or a fragment that is well formed, without its declaration. White space that stands
// alone between elements is dropped but in styles 1 and 3.
func toXML(v Value, to Type, style int) (Value, *fault.Error) {
	text := v.s
	if err := switchesEncoding(v); err != nil {
		return Value{}, err
	}
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

var declaredEncoding = regexp.MustCompile(`^<\?xml\s[^>]*encoding\s*=\s*["']([^"']*)["'][^>]*\?>`)

// switchesEncoding gives error 9402 for text whose declaration names another width of characters than the text has: nvarchar is UTF-16,
// varchar is not. Bytes are as they say.
func switchesEncoding(v Value) *fault.Error {
	if !v.Kind().IsCharacter() {
		return nil
	}
	found := declaredEncoding.FindStringSubmatch(v.s)
	if found == nil {
		return nil
	}
	name := strings.ToLower(found[1])
	if isWide := strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "ucs-2"); isWide == v.Kind().IsUnicode() {
		return nil
	}
	return fault.New(9402, strings.Count(found[0], "\n")+1, len(found[0])-strings.LastIndexByte(found[0], '\n')-1)
}

// maxDepth is how deep elements may stand in one another.
const maxDepth = 128

// wellFormed checks a fragment and gives it as SQL Server writes it: without declaration and insignificant white space, with attributes in
// double quotes, with CDATA and references as text, and with elements that are empty as <a/>.
func wellFormed(text string, keepsSpace bool) (string, *fault.Error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	w := &xmlWriter{keepsSpace: keepsSpace}
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
				w.node(part)
			}
		case xml.CharData:
			w.characters.Write(token)
		case xml.StartElement:
			depth++
			if depth > maxDepth {
				return "", fault.New(6335, maxDepth)
			}
			w.begin(token)
		case xml.EndElement:
			depth--
			w.end(token.Name)
		default:
			w.node(part)
		}
	}
	if err := matched(text); err != nil {
		return "", err
	}
	return w.String(), nil
}

// An xmlWriter writes what a reader reads.
type xmlWriter struct {
	out        strings.Builder
	characters strings.Builder // those that follow each other are one text
	isOpen     bool            // the start tag that was written last may still become that of an empty element
	keepsSpace bool
}

// String gives what was written.
func (w *xmlWriter) String() string {
	w.flush()
	return w.out.String()
}

// flush writes the text that has come, and behind it no start tag is open.
func (w *xmlWriter) flush() {
	text := w.characters.String()
	w.characters.Reset()
	if text == "" || !w.keepsSpace && strings.Trim(text, " \t\r\n") == "" {
		return
	}
	w.close()
	w.out.WriteString(inText.Replace(text))
}

func (w *xmlWriter) close() {
	if w.isOpen {
		w.out.WriteByte('>')
		w.isOpen = false
	}
}

// node writes a comment or an instruction as it is.
func (w *xmlWriter) node(part string) {
	w.flush()
	w.close()
	w.out.WriteString(part)
}

func (w *xmlWriter) begin(element xml.StartElement) {
	w.flush()
	w.close()
	w.out.WriteString("<" + prefixed(element.Name))
	for _, a := range element.Attr {
		w.out.WriteString(" " + prefixed(a.Name) + `="` + inAttribute.Replace(a.Value) + `"`)
	}
	w.isOpen = true
}

func (w *xmlWriter) end(name xml.Name) {
	w.flush()
	if w.isOpen {
		w.out.WriteString("/>")
		w.isOpen = false
		return
	}
	w.out.WriteString("</" + prefixed(name) + ">")
}

// prefixed gives a name with its prefix, which RawToken leaves in the place of the namespace.
func prefixed(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}

var (
	inText      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#x0D;")
	inAttribute = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", "&#x0A;", "\r", "&#x0D;", "\t", "&#x09;")
)

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
	case strings.Contains(message, "entity & (no semicolon)"):
		number = 9421
	case strings.Contains(message, "(no semicolon)"):
		number = 9411
	case strings.Contains(message, "entity"):
		number = 9448
	case strings.Contains(message, "expected />"), strings.Contains(message, "invalid characters between"):
		number = 9412
	case strings.Contains(message, "quoted"):
		number = 9413
	case strings.Contains(message, "without ="), strings.Contains(message, "expected attribute name"):
		number = 9414
	case strings.Contains(message, "expected element name"):
		number = 9421
	}
	return fault.New(number, line, character)
}
