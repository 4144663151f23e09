package mapping

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// elementsOfXSLT are the elements of XSLT 1.0, and the one that libxslt has besides.
var elementsOfXSLT = strings.Fields(`apply-imports apply-templates attribute attribute-set call-template choose comment copy copy-of
	decimal-format document element fallback for-each if import include key message namespace-alias number otherwise output param
	preserve-space processing-instruction sort strip-space stylesheet template text transform value-of variable when with-param`)

// functionsOfXSLT are the functions of XPath 1.0 and XSLT 1.0, and what else may stand before a parenthesis: tests of nodes, and operators.
var functionsOfXSLT = strings.Fields(`last position count id local-name namespace-uri name string concat starts-with contains
	substring-before substring-after substring string-length normalize-space translate boolean not true false lang number sum floor
	ceiling round document key format-number current unparsed-entity-uri generate-id system-property element-available
	function-available node text comment processing-instruction and or div mod`)

var (
	expressionsOfXSLT = []string{"select", "test", "match", "use", "count", "from", "value"}
	textInExpression  = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	beforeParenthesis = regexp.MustCompile(`([$:\w.-]+)\s*\(`)
)

// unknown gives the first element or function that XSLT 1.0 does not have, of a stylesheet that says it is of that version. libxslt
// compiles them, and fails with the first message that comes there.
func (f file) unknown() *fault.Fault {
	decoder := xml.NewDecoder(strings.NewReader(f.text))
	decoder.Entity = xml.HTMLEntity
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for isRoot := true; ; {
		line, _ := decoder.InputPos()
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // it is the end, or libxml2 says what is not well-formed
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		if isRoot && !isOfVersion1(e) {
			return nil
		}
		isRoot = false
		if e.Name.Space != spaceXSL {
			continue
		}
		message, remedy := "", ""
		if !slices.Contains(elementsOfXSLT, e.Name.Local) {
			message, remedy = fmt.Sprintf("XSLT 1.0 has no element %s", e.Name.Local), "write one that it has"
		} else if name := unknownFunction(e.Attr); name != "" {
			message = fmt.Sprintf("XPath 1.0 has no function %s()", name)
			remedy = "write one that it has, or one of EXSLT or BizTalk with the prefix of its namespace"
		}
		if message != "" {
			return &fault.Fault{Message: message, Remedy: remedy, File: f.name, Place: fault.Place{Line: int64(line + f.lines)}}
		}
	}
}

func isOfVersion1(root xml.StartElement) bool {
	return slices.ContainsFunc(root.Attr, func(a xml.Attr) bool { return a.Name.Local == "version" && a.Value == "1.0" })
}

func unknownFunction(attributes []xml.Attr) string {
	for _, a := range attributes {
		if a.Name.Space != "" || !slices.Contains(expressionsOfXSLT, a.Name.Local) {
			continue
		}
		for _, found := range beforeParenthesis.FindAllStringSubmatch(textInExpression.ReplaceAllString(a.Value, "''"), -1) {
			name := strings.TrimLeft(found[1], "-.0123456789")
			if name != "" && !strings.ContainsAny(name, ":$") && !slices.Contains(functionsOfXSLT, name) {
				return name
			}
		}
	}
	return ""
}
