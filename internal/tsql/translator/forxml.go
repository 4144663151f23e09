package translator

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/value"
)

// instance is the namespace of xsi:nil.
const instance = `xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`

var (
	inAttribute = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", "&#x0A;", "\r", "&#x0D;", "\t", "&#x09;")
	inElement   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#x0D;")
)

// writeXML gives the document of rows as FOR XML writes it; false without rows, also with ROOT.
func (s *documentShape) writeXML(settings *value.Settings, rows [][]value.Value) (string, bool) {
	var out strings.Builder
	switch s.mode {
	case "AUTO":
		s.writeNested(&out, settings, rows)
	case "RAW":
		for _, row := range rows {
			s.writeElement(&out, settings, s.element, s.columns, row, s.rowAttributes(), "")
		}
	default:
		for _, row := range rows {
			s.writePath(&out, settings, row)
		}
	}
	if !s.hasRoot || len(rows) == 0 {
		return out.String(), len(rows) > 0
	}
	if out.Len() == 0 {
		return "<" + s.root + s.declarations() + "/>", true
	}
	return "<" + s.root + s.declarations() + ">" + out.String() + "</" + s.root + ">", true
}

// declarations are the namespaces of WITH XMLNAMESPACES, written at the outermost elements.
func (s *documentShape) declarations() string {
	text := ""
	if s.showsNull {
		text = " " + instance
	}
	var out strings.Builder
	out.WriteString(text)
	for _, n := range slices.Backward(s.namespaces) {
		name := "xmlns"
		if n.prefix != "" {
			name += ":" + n.prefix
		}
		out.WriteString(" " + name + `="` + inAttribute.Replace(n.uri) + `"`)
	}
	return out.String()
}

// rowAttributes gives the namespaces to each row where there is no ROOT.
func (s *documentShape) rowAttributes() string {
	if s.hasRoot {
		return ""
	}
	return s.declarations()
}

// writeElement writes a row as attributes, or as elements inside one.
func (s *documentShape) writeElement(
	out *strings.Builder, settings *value.Settings, name string, columns []documentColumn, row []value.Value, attributes, inner string,
) {
	var content strings.Builder
	out.WriteString("<" + xmlName(name) + attributes)
	for i, c := range columns {
		v := row[i]
		isMarkup := v.Kind() == value.XML
		switch {
		case v.IsNull() && s.isElements && s.showsNull:
			content.WriteString("<" + xmlName(c.name) + ` xsi:nil="true"/>`)
		case v.IsNull():
		case s.isElements || isMarkup:
			content.WriteString(element(xmlName(c.name), markup(settings, v)))
		default:
			out.WriteString(" " + xmlName(c.name) + `="` + inAttribute.Replace(xmlText(settings, v)) + `"`)
		}
	}
	content.WriteString(inner)
	if content.Len() == 0 {
		out.WriteString("/>")
		return
	}
	out.WriteString(">" + content.String() + "</" + xmlName(name) + ">")
}

func element(name, content string) string {
	if content == "" {
		return "<" + name + "></" + name + ">"
	}
	return "<" + name + ">" + content + "</" + name + ">"
}

// markup gives a value as the content of an element: xml as it is, other values escaped.
func markup(settings *value.Settings, v value.Value) string {
	if v.Kind() == value.XML {
		return v.Raw()
	}
	return inElement.Replace(xmlText(settings, v))
}

// xmlText writes a value as XML does: dates by ISO 8601, bytes in base 64.
func xmlText(settings *value.Settings, v value.Value) string {
	switch k := v.Kind(); {
	case k.IsBinary():
		return base64.StdEncoding.EncodeToString([]byte(v.Raw()))
	case k.IsTemporal():
		text, err := settings.ConvertStyled(v, value.Sized(value.VarChar, 40), isoStyle)
		if err == nil {
			return text.Raw()
		}
	case k.IsMoney():
		return value.Display(v)
	case k.IsApproximate():
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v.Float64(), 'e', 15, 64), "e")
		n, _ := strconv.Atoi(exponent)
		return fmt.Sprintf("%se%+04d", mantissa, n)
	}
	return settings.Text(v)
}

// isoStyle is the style of CONVERT for ISO 8601.
const isoStyle = 126

// xmlName writes a name so that it is one of XML.
func xmlName(name string) string {
	var out strings.Builder
	for i, r := range name {
		isLetter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0xBF && r != '×' && r != '÷'
		isOther := r >= '0' && r <= '9' || r == '-' || r == '.' || r == ':'
		if isLetter || isOther && i > 0 {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "_x%04X_", r)
		}
	}
	return out.String()
}

// writePath writes a row of FOR XML PATH: names of columns are paths, and those that begin alike share elements.
func (s *documentShape) writePath(out *strings.Builder, settings *value.Settings, row []value.Value) {
	w := &pathWriter{attributes: s.rowAttributes()}
	for i, c := range s.columns {
		v := row[i]
		if v.IsNull() && (!s.showsNull || c.name == "" || strings.HasPrefix(c.name, "@")) {
			continue
		}
		steps := strings.Split(c.name, "/")
		last := steps[len(steps)-1]
		parents := steps[:len(steps)-1]
		if attribute, is := strings.CutPrefix(last, "@"); is {
			w.attribute(parents, attribute, xmlText(settings, v))
			continue
		}
		w.openTo(parents)
		switch {
		case last == "" || last == "*" || last == "text()" || last == "node()":
			w.content.WriteString(markup(settings, v))
		case last == "data()":
			if w.content.Len() > 0 && !strings.HasSuffix(w.content.String(), ">") {
				w.content.WriteString(" ")
			}
			w.content.WriteString(markup(settings, v))
		case v.IsNull():
			w.content.WriteString("<" + xmlName(last) + ` xsi:nil="true"/>`)
		default:
			w.content.WriteString(element(xmlName(last), markup(settings, v)))
		}
	}
	w.closeTo(0)
	out.WriteString(s.wrapped(w.attributes, w.content.String()))
}

// wrapped puts the content of a row into its element.
func (s *documentShape) wrapped(attributes, content string) string {
	switch {
	case s.element == "":
		return content
	case content == "":
		return "<" + s.element + attributes + "/>"
	}
	return "<" + s.element + attributes + ">" + content + "</" + s.element + ">"
}

// A pathWriter has the row of FOR XML PATH that is written, and the elements of it that are open.
type pathWriter struct {
	attributes string // of the row
	content    strings.Builder
	open       []string
}

func (w *pathWriter) closeTo(depth int) {
	for len(w.open) > depth {
		name := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		w.content.WriteString("</" + name + ">")
	}
}

// openTo closes what a path does not share with the last one, and opens the rest of it.
func (w *pathWriter) openTo(parents []string) {
	common := 0
	for common < len(w.open) && common < len(parents) && w.open[common] == xmlName(parents[common]) {
		common++
	}
	w.closeTo(common)
	for _, parent := range parents[common:] {
		w.content.WriteString("<" + xmlName(parent) + ">")
		w.open = append(w.open, xmlName(parent))
	}
}

// attribute writes an attribute of the row, or of the element that was opened last.
func (w *pathWriter) attribute(parents []string, name, text string) {
	written := " " + name + `="` + inAttribute.Replace(text) + `"`
	if len(parents) == 0 {
		w.attributes += written
		return
	}
	w.openTo(parents)
	before := strings.TrimSuffix(w.content.String(), ">")
	w.content.Reset()
	w.content.WriteString(before + written + ">")
}

// writeNested writes rows of FOR XML AUTO: a level for each table, and one element for rows that are alike up to its level.
func (s *documentShape) writeNested(out *strings.Builder, settings *value.Settings, rows [][]value.Value) {
	var levels []level
	for i, c := range s.columns {
		at := -1
		for n, l := range levels {
			if strings.EqualFold(l.name, c.source) {
				at = n
			}
		}
		if at < 0 {
			levels = append(levels, level{name: c.source})
			at = len(levels) - 1
		}
		levels[at].columns = append(levels[at].columns, i)
	}
	s.writeLevel(out, settings, levels, rows, s.rowAttributes())
}

// A level is a table of FOR XML AUTO with its columns.
type level struct {
	name    string
	columns []int
}

func (s *documentShape) writeLevel(
	out *strings.Builder, settings *value.Settings, levels []level, rows [][]value.Value, attributes string,
) {
	if len(levels) == 0 {
		return
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for len(levels) > 1 && to < len(rows) && alike(settings, levels[0].columns, rows[from], rows[to]) {
			to++
		}
		var inner strings.Builder
		s.writeLevel(&inner, settings, levels[1:], rows[from:to], "")
		var columns []documentColumn
		var row []value.Value
		for _, i := range levels[0].columns {
			columns, row = append(columns, s.columns[i]), append(row, rows[from][i])
		}
		s.writeElement(out, settings, levels[0].name, columns, row, attributes, inner.String())
		from = to
	}
}

// alike reports whether two rows have the same values in these columns.
func alike(settings *value.Settings, columns []int, a, b []value.Value) bool {
	for _, i := range columns {
		if a[i].IsNull() != b[i].IsNull() || settings.Text(a[i]) != settings.Text(b[i]) {
			return false
		}
	}
	return true
}
