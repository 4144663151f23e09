package pipeline

import "bytes"

// BuiltInFor gives the receive pipeline that is built in for the form of a body, which is known by its first character.
func BuiltInFor(body []byte) Definition {
	name := map[string]string{"xml": "XMLReceive", formatJSON: "JSONReceive"}[formOf(body)]
	if name == "" {
		name = "PassThruReceive"
	}
	return BuiltIn()[name]
}

// formatJSON is the format of message types whose messages are JSON.
const formatJSON = "json"

// formOf gives the format that the beginning of a body shows; empty: neither XML nor JSON.
func formOf(body []byte) string {
	trimmed := bytes.TrimLeft(body, " \t\r\n\xef\xbb\xbf\xff\xfe\x00")
	if len(trimmed) == 0 {
		return ""
	}
	switch trimmed[0] {
	case '<':
		return "xml"
	case '{', '[':
		return formatJSON
	}
	return ""
}

// TypeFor gives the type of a body that is meant to be of one: none where the body is not in the form of that type.
func (t *Types) TypeFor(meant string, body []byte) string {
	m, isDefined := t.byName[meant]
	if !isDefined {
		return meant
	}
	format := "xml"
	if m != nil && m.Format != "" {
		format = m.Format
	}
	switch form := formOf(body); {
	case form == format, form == "" && format != "xml" && format != formatJSON:
		return meant
	}
	return ""
}
