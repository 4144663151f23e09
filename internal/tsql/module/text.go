package module

import (
	"crypto/md5" //nolint:gosec // shortens names, guards nothing
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
)

// maxName is how long a name of PostgreSQL may be, in bytes.
const maxName = 63

// digits of the digest at the end of a name that is cut.
const digestDigits = 12

// NameOf gives the name of the procedure of PostgreSQL that holds a module: in lower case, because names of modules have no letter case.
// A name that is too long is cut and ends in a digest of the whole.
func NameOf(name string) string {
	folded := strings.ToLower(name)
	if len(folded) <= maxName {
		return folded
	}
	sum := md5.Sum([]byte(folded)) //nolint:gosec // shortens names, guards nothing
	return strings.ToValidUTF8(folded[:maxName-digestDigits-1], "") + "_" + hex.EncodeToString(sum[:])[:digestDigits]
}

// A header is the first line of a body.
type header struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Quoted bool   `json:"quoted_identifier"`
}

const headerMark = "-- T-SQL "

// stub raises the error of a call in PostgreSQL.
const stub = `begin
  raise exception using
    errcode = 'TSQL0',
    message = 'the procedure is written in T-SQL',
    detail = 'The runner of T-SQL interprets it; PostgreSQL keeps its text.',
    hint = 'Run it by parley tsql: EXECUTE and its name. The daemon runs it for a queue that names it as its activation procedure.';
end
`

var (
	lineEnd      = regexp.MustCompile(`\r\n|\n|\r`)
	markedLine   = regexp.MustCompile(`(\r\n|\n|\r)--`)
	textBehind   = "\n-- its text:\n"
	commentStart = "--"
)

// bodyOf gives the body that holds a text.
func bodyOf(h header, text string) (string, error) {
	line, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	return headerMark + string(line) + "\n" + stub + textBehind + commentStart + lineEnd.ReplaceAllString(text, "${0}--"), nil
}

// textOf reads a body; false where it is not of this package.
func textOf(body string) (h header, text string, is bool) {
	rest, is := strings.CutPrefix(body, headerMark)
	if !is {
		return h, "", false
	}
	line, rest, is := strings.Cut(rest, "\n")
	if !is || json.Unmarshal([]byte(line), &h) != nil {
		return h, "", false
	}
	_, marked, is := strings.Cut(rest, textBehind+commentStart)
	return h, markedLine.ReplaceAllString(marked, "$1"), is
}
