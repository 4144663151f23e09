package pipeline

import "bytes"

// BuiltInFor gives the receive pipeline that is built in for the form of a body, which is known by its first character.
func BuiltInFor(body []byte) Definition {
	name := "PassThruReceive"
	if trimmed := bytes.TrimLeft(body, " \t\r\n\xef\xbb\xbf\xff\xfe\x00"); len(trimmed) > 0 {
		switch trimmed[0] {
		case '<':
			name = "XMLReceive"
		case '{', '[':
			name = "JSONReceive"
		}
	}
	return BuiltIn()[name]
}
