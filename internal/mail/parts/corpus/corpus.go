// Package corpus has small messages as real programs write them, each named for the rule that it shows, and what the payload has to say of
// it. It is for tests: of our own reading, and of that of other programs.
package corpus

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed messages/*.txtar
var files embed.FS

// Message is a message of the corpus.
type Message struct {
	Name string // the rule
	Text []byte // lines end with CR LF
	// Want has the values that are read, by the names of fields of the payload, and the problems. The rule is about the fields that are
	// named; where no problems are named there are none.
	Want map[string]string
}

var (
	heading = regexp.MustCompile(`(?m)^-- (\S+) --\n`)
	escaped = regexp.MustCompile(`\\x[0-9a-f]{2}`)
)

// Messages gives the corpus.
func Messages() (all []Message, err error) {
	entries, err := files.ReadDir("messages")
	if err != nil {
		return nil, fmt.Errorf("the corpus: %w", err)
	}
	for _, entry := range entries {
		text, err := files.ReadFile("messages/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("the corpus: %w", err)
		}
		read, err := messagesOf(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		all = append(all, read...)
	}
	return all, nil
}

// messagesOf reads a file, in which each message stands in front of what is read of it.
func messagesOf(file string) (all []Message, err error) {
	at := heading.FindAllStringSubmatchIndex(file, -1)
	section := func(i int) (name, text string) {
		end := len(file)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		return file[at[i][2]:at[i][3]], file[at[i][1]:end]
	}
	for i := 0; i+1 < len(at); i += 2 {
		name, text := section(i)
		of, wanted := section(i + 1)
		if name != of+".eml" {
			return nil, fmt.Errorf("%s stands behind %s", of, name)
		}
		m := Message{Name: of, Text: unescaped(strings.ReplaceAll(text, "\n", "\r\n")), Want: map[string]string{}}
		for line := range strings.Lines(wanted) {
			field, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			m.Want[field] = string(unescaped(strings.TrimPrefix(want, " ")))
		}
		all = append(all, m)
	}
	return all, nil
}

// unescaped makes a byte of each \xHH.
func unescaped(text string) []byte {
	return []byte(escaped.ReplaceAllStringFunc(text, func(written string) string {
		value, _ := strconv.ParseUint(written[2:], 16, 8) // two digits
		return string([]byte{byte(value)})
	}))
}
