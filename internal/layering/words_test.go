package layering

import (
	"go/scanner"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// refusedWords have a word of the field in their place; docs/glossary.md defines those of Parley.
var refusedWords = map[string]string{
	"bed": "fixture or cluster", "bell": "notifier or wake-up", "bells": "notifiers or wake-ups", "doorbell": "notifier or wake-up", "doorbells": "notifiers or wake-ups",
	"evil": "fault injection", "stranger": "unknown peer, or outsider", "strangers": "unknown peers, or outsiders", "strike": "retry", "strikes": "retries",
	"look": "scan, poll, read or check", "looks": "scans, polls, reads or checks", "looked": "scanned, polled, read or checked", "looking": "scanning, polling, reading or checking",
	"hear": "receive or learn", "hears": "receives or learns", "heard": "received or learned", "noted": "recorded",
	"noting": "recording", "notes": "records",
	"tell": "report, show or distinguish", "tells": "reports, shows or distinguishes", "told": "reported, informed or asked",
	"telling":      "reporting, showing or informing",
	"maillog_file": "nothing: postlogd, which would write it, can block with all of Postfix that logs; without it the log is that of the system",
}

// notOurWords are the list itself, what is made of other files, the past, and the specifications.
var notOurWords = []string{"internal/layering/", "migrations/", "CHANGELOG.md", "spec/"}

var (
	// A value or a name is looked up, as everywhere.
	lookUp     = regexp.MustCompile(`(?i)\blook(s|ed|ing)?[ -]up\b`)
	word       = regexp.MustCompile(`[A-Za-z0-9_]+`)
	partOfName = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
)

// One word stands for one thing: the words of the list are in no comment, text and name of the program and on no page.
func TestWordsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, path := range paths(t, ".go", ".sql", ".md") {
		text := read(t, path)
		if generated.MatchString(text) || slices.ContainsFunc(notOurWords, func(beginning string) bool { return strings.HasPrefix(path, beginning) }) {
			continue
		}
		words := wordsOfComment(text)
		switch filepath.Ext(path) {
		case ".go":
			words = wordsOfGo(text)
		case ".sql":
			words = wordsOfSQL(text)
		}
		for _, w := range words {
			if _, isRefused := refusal(w); isRefused {
				found[path] = append(found[path], w)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[path])
		for _, w := range slices.Compact(found[path]) {
			better, _ := refusal(w)
			t.Errorf("%s has the word %q: write %s", path, w, better)
		}
	}
}

// refusal returns what to write in place of a word, if it is refused. As part of a name it may be refused alone: as a verb, or without its other half.
func refusal(word string) (better string, isRefused bool) {
	switch word {
	case verbNote:
		return "record", true
	case loneAside:
		return "set aside, for conversations that are, or another word", true
	}
	better, isRefused = refusedWords[word]
	return better, isRefused
}

const verbNote, loneAside = "note (a verb)", "aside (without set)"

// wordsOfGo returns the words of comments and strings and the parts of identifiers, in lower case.
func wordsOfGo(text string) (words []string) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(text)), []byte(text), nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		if kind == token.EOF {
			return words
		}
		if kind == token.COMMENT || kind == token.STRING {
			words = append(words, wordsOfComment(literal)...)
		}
		if kind == token.IDENT {
			words = append(words, wordsOfName(partOfName.FindAllString(lookUpName.ReplaceAllString(literal, ""), -1))...)
		}
	}
}

var lookUpName = regexp.MustCompile(`[lL]ook(ed)?[uU]p|LookPath`)

// wordsOfName returns the parts of a name, in lower case. Before another part, note is a verb.
func wordsOfName(parts []string) (words []string) {
	for i, part := range parts {
		part = strings.ToLower(part)
		isAlone := !slices.ContainsFunc(parts[:i], func(before string) bool { return setWord.MatchString(before) })
		switch {
		case part == "note" && i+1 < len(parts):
			part = verbNote
		case part == "aside" && isAlone:
			part = loneAside
		}
		words = append(words, part)
	}
	return words
}

// wordsOfSQL returns the words of names, comments and texts; each file of SQL is all words.
func wordsOfSQL(text string) (words []string) {
	all := wordsOfComment(lookUpSQL.ReplaceAllString(strings.ReplaceAll(text, "_", " "), ""))
	for i, w := range all {
		switch {
		case w == "note":
			w = verbNote
		case w == "aside" && !slices.ContainsFunc(all[max(0, i-8):i], setWord.MatchString):
			w = loneAside
		}
		words = append(words, w)
	}
	return words
}

var (
	lookUpSQL = regexp.MustCompile(`\blookup\b`)
	setWord   = regexp.MustCompile(`(?i)^set(s|ting)?$`)
)

func wordsOfComment(text string) []string {
	return word.FindAllString(strings.ToLower(lookUp.ReplaceAllString(text, "")), -1)
}

func TestWordsAreFoundInNamesAndComments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"package p\n// It looks closer.\nvar told, lookUpName = 1, `a stranger`": {"looks", "stranger", "told"},
		"package p\nfunc ringBell() { /* heard */ }":                             {"bell", "heard"},
		"package p\n// It is looked up in _p_doorbell.":                          nil,
		"package p\nfunc noteFailure() { setAside, note := 1, leftAside }":       {loneAside, verbNote},
	} {
		var got []string
		for _, w := range wordsOfGo(text) {
			if _, isRefused := refusal(w); isRefused {
				got = append(got, w)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
	got := slices.DeleteFunc(wordsOfSQL("select lookup_name, _p_ring_bell('A stranger''s.'), move_aside; -- who looks; note the set_aside; setting it\n-- aside"),
		func(w string) bool { _, isRefused := refusal(w); return !isRefused })
	if want := []string{"bell", "stranger", loneAside, "looks", verbNote}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
