// Package filename makes names of files, and other texts, of messages: fixed parts and macros, which stand for values of the message.
package filename

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// macro gives the value of a macro for a message; empty where the message does not say.
type macro func(m *adapter.Message) string

// macros are those that need no setting. Times are those at which messages came, so that a repeat writes the same file.
var macros = map[string]macro{
	"MessageID":      func(m *adapter.Message) string { return strconv.FormatInt(m.ID, 10) },
	"SourceFileName": func(m *adapter.Message) string { return m.Property("SourceFileName") },
	"datetime":       func(m *adapter.Message) string { return m.ReceivedAt.UTC().Format("2006-01-02T150405") },
	"datetime.tz": func(m *adapter.Message) string {
		return m.ReceivedAt.Local().Format("2006-01-02T150405") + zone(m.ReceivedAt)
	},
	"datetime_bts2000": func(m *adapter.Message) string { // the last digit is that of a tenth of a second
		at := m.ReceivedAt.UTC()
		return at.Format("20060102150405") + strconv.Itoa(at.Nanosecond()/int(100*time.Millisecond))
	},
	"time":    func(m *adapter.Message) string { return m.ReceivedAt.UTC().Format("150405") },
	"time.tz": func(m *adapter.Message) string { return m.ReceivedAt.Local().Format("150405") + zone(m.ReceivedAt) },
}

// partyMacros are known to BizTalk Server, and stand for what Parley does not have.
var partyMacros = []string{
	"DestinationParty", "DestinationPartyID", "DestinationPartyQualifier", "SourceParty", "SourcePartyID", "SourcePartyQualifier",
}

// zone gives how far local time is ahead of UTC, as BizTalk Server writes it: +100, -530.
func zone(at time.Time) string {
	_, seconds := at.Local().Zone()
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	return fmt.Sprintf("%s%d%02d", sign, seconds/3600, seconds/60%60)
}

// Template is a text with macros.
type Template struct {
	parts []part
	// IsUnique says that no two messages have a name in common.
	IsUnique bool
}

// HasMacros reports whether the text depends on the message.
func (t Template) HasMacros() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.macro != nil })
}

// part of a name is a text, or a macro.
type part struct {
	text  string
	name  string
	macro macro
}

// Parse reads a text with macros; own are the names of further ones, with the property of each. The problem has no path.
func Parse(written string, own map[string]string) (Template, *adapter.Problem) {
	var t Template
	wrong := func(message, remedy string) (Template, *adapter.Problem) {
		return Template{}, &adapter.Problem{Message: message, Remedy: remedy}
	}
	for i, text := range strings.Split(written, "%") {
		switch {
		case i%2 == 0:
			t.parts = append(t.parts, part{text: text})
			continue
		case text == "": // %% is a percent sign
			t.parts = append(t.parts, part{text: "%"})
			continue
		}
		found, known := macros[text]
		if property, isOwn := own[text]; isOwn && !known {
			found, known = func(m *adapter.Message) string { return m.Property(property) }, true
		}
		switch {
		case slices.Contains(partyMacros, text) && !known:
			return wrong(fmt.Sprintf("%%%s%% has no value, since there are no parties", text),
				fmt.Sprintf("Name the property that has it, in settings: macros: {%s: \"namespace#Name\"}.", text))
		case !known:
			return wrong(fmt.Sprintf("the macro %%%s%% is not known", text), fmt.Sprintf("There are %%%s%%, and those that the setting macros "+
				"makes of properties; a percent sign is written %%%%.", strings.Join(slices.Sorted(maps.Keys(macros)), "%, %")))
		}
		t.parts = append(t.parts, part{name: text, macro: found})
		t.IsUnique = t.IsUnique || text == "MessageID"
	}
	if strings.Count(written, "%")%2 == 1 {
		return wrong("a percent sign has no second one", "Close the macro, or write %% for a percent sign.")
	}
	return t, nil
}

// CheckOwn gives what is wrong with the setting macros.
func CheckOwn(own map[string]string) []adapter.Problem {
	var problems []adapter.Problem
	for name, property := range own {
		if _, isOurs := macros[name]; isOurs || strings.Contains(name, "%") || name == "" || property == "" {
			problems = append(problems, adapter.Problem{
				Path: []string{"settings", "macros", name}, Message: fmt.Sprintf("the macro %q cannot be made of the property %q", name, property),
				Remedy: "Give it a name that no macro of the adapter has, without a percent sign, and the name of a property.",
			})
		}
	}
	return problems
}

// Text gives the text of a message; the macros stand for values as they are. missing is the name of the first macro without a value, or
// with one that may not be; isGood says which may, nil for all.
func (t Template) Text(m *adapter.Message, isGood func(value string) bool) (text, missing string) {
	var b strings.Builder
	for _, p := range t.parts {
		value := p.text
		if p.macro != nil {
			value = p.macro(m)
			if (value == "" || isGood != nil && !isGood(value)) && missing == "" {
				missing = p.name
			}
		}
		b.WriteString(value)
	}
	return b.String(), missing
}

// LongestName is how many bytes the name of a file may have.
const LongestName = 255

// Reserved is with which the names begin that adapters give to files while they work on them.
const Reserved = ".parley-"

// Temporary is with which the names of the files begin that a port is writing. Ports of other names have another one.
func Temporary(port string) string {
	sum := sha256.Sum256([]byte(port))
	return Reserved + "out-" + hex.EncodeToString(sum[:4]) + "-"
}

// Name gives the name of the file of a message. Values that others have chosen lead to no other folder.
func (t Template) Name(m *adapter.Message) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		value := p.text
		if p.macro != nil {
			if value = cleaned(p.macro(m)); value == "" {
				return "", Refused("the message has no value for %%%s%% of the name of its file; send what has none by another port", p.name)
			}
			if b.Len() == 0 && value[0] == '.' {
				value = "_" + value[1:]
			}
		}
		b.WriteString(value)
	}
	if name := b.String(); name == "." || name == ".." || strings.HasPrefix(name, Reserved) {
		return "", Refused("the name of the file would be %q, which is no file's or one of the adapter; begin the address without a dot", name)
	}
	if b.Len() > LongestName {
		return "", Refused("the name of the file would have %d bytes, and may have %d; shorten the address", b.Len(), LongestName)
	}
	return b.String(), nil
}

// Refused is the failure of a message that no retry helps.
func Refused(format string, args ...any) error {
	return &adapter.Failure{Code: "send.refused", Permanent: true, Err: fmt.Errorf(format, args...)}
}

// longestValue is how many bytes the value of a property has in a name.
const longestValue = 120

// cleaned makes a part of a name of a value that others have chosen: it leads to no other folder, and shows what it has. The end of a long
// one is its hash.
func cleaned(value string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, value)
	if len(clean) <= longestValue {
		return clean
	}
	sum := sha256.Sum256([]byte(value))
	ending := "~" + hex.EncodeToString(sum[:8])
	cut := clean[:longestValue-len(ending)]
	for !utf8.ValidString(cut) {
		cut = cut[:len(cut)-1]
	}
	return cut + ending
}
