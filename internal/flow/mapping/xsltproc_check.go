package mapping

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Namespaces whose functions make expressions of texts, in which any function can be called.
var spacesOfExpressions = []string{"http://exslt.org/dynamic", "http://icl.com/saxon"}

// readsFiles finds functions by which a stylesheet reads files. xsltproc can be kept from writing, and not from reading.
var readsFiles = regexp.MustCompile(`\bdocument\s*\(`)

// checkForXsltproc refuses a stylesheet that xsltproc would have read files: it can be kept from the network and from writing alone. The
// stylesheet is read as XML, because references and entities can stand for any letter of a name. So one that this reader does not take in
// full is refused, too.
func checkForXsltproc(f file, all []file) *fault.Fault {
	refused := func(line int, format string, values ...any) *fault.Fault {
		return &fault.Fault{
			Message: fmt.Sprintf(format, values...) + ", and xsltproc would read any file",
			Remedy:  "install parley-xslt, which reads none", File: f.name, Place: fault.Place{Line: int64(line + f.lines)},
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(f.text))
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		line, _ := decoder.InputPos()
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if syntax, is := errors.AsType[*xml.SyntaxError](err); is {
			return &fault.Fault{
				Message: "the stylesheet cannot be read as XML: " + syntax.Msg, Remedy: "correct the stylesheet", File: f.name,
				Place: fault.Place{Line: int64(syntax.Line + f.lines)},
			}
		}
		if err != nil {
			return refused(line, "the stylesheet cannot be checked: %v", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return refused(line, "the stylesheet has a document type definition")
		case xml.StartElement:
			for _, a := range t.Attr {
				switch {
				case readsFiles.MatchString(a.Value):
					return refused(line, "the stylesheet calls document()")
				case slices.Contains(spacesOfExpressions, a.Value):
					return refused(line, "the stylesheet uses %s, whose functions make expressions of texts", a.Value)
				case a.Name.Local == "base" && (a.Name.Space == "xml" || a.Name.Space == spaceXML):
					return refused(line, "the stylesheet has an xml:base")
				case t.Name.Space == spaceXSL && isInclusion(t.Name.Local) && a.Name.Local == "href" && !isAmong(all, f.name, a.Value):
					return refused(line, "the stylesheet includes %s, which is no file of the map", a.Value)
				}
			}
		}
	}
}

const spaceXML = "http://www.w3.org/XML/1998/namespace"

func isInclusion(element string) bool { return element == "include" || element == "import" }

// isAmong reports whether a name, written in a file of a map, is that of another one of it.
func isAmong(all []file, in, written string) bool {
	if strings.ContainsAny(written, `:%?#\`) || path.IsAbs(written) {
		return false
	}
	name := path.Join(path.Dir(in), written)
	return slices.ContainsFunc(all, func(f file) bool { return path.Clean(f.name) == name })
}
