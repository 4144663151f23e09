package layering

import (
	"go/scanner"
	"go/token"
	"maps"
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
	"tell": "report, show or distinguish", "tells": "reports, shows or distinguishes", "told": "reported, informed or asked",
}

// stillRefusedIn are the files, by the beginning of their paths, that are not rewritten yet. Take one off the list once it is clean; put none on it.
var stillRefusedIn = strings.Fields(`
	consumer.go consumer_reader.go diagnose_connection.go follow.go
	internal/broker/activation/ internal/broker/transport/transmitter/ internal/cli/errors.go internal/cli/serve internal/notifier/ internal/store/activation/
	sql/activation/ sql/base/ sql/broker/built_in.sql sql/catalog/ sql/conversation/ sql/diagnosis/ sql/poison/set_aside.sql sql/receive/ sql/send/send.sql
`)

var (
	// A value or a name is looked up, as everywhere.
	lookUp     = regexp.MustCompile(`(?i)\blook(s|ed|ing)?[ -]up\b`)
	word       = regexp.MustCompile(`[A-Za-z0-9_]+`)
	partOfName = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	sqlComment = regexp.MustCompile(`--.*`)
)

// One word stands for one thing: the words of the list are in no comment and in no name of the program.
func TestWordsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, path := range paths(t, ".go", ".sql") {
		text := read(t, path)
		if generated.MatchString(text) || strings.HasPrefix(path, "internal/layering/") || strings.HasPrefix(path, "migrations/") {
			continue
		}
		words := wordsOfSQL(text)
		if strings.HasSuffix(path, ".go") {
			words = wordsOfGo(text)
		}
		for _, w := range words {
			if _, isRefused := refusedWords[w]; isRefused {
				found[path] = append(found[path], w)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if slices.ContainsFunc(stillRefusedIn, func(beginning string) bool { return strings.HasPrefix(path, beginning) }) {
			continue
		}
		slices.Sort(found[path])
		for _, w := range slices.Compact(found[path]) {
			t.Errorf("%s has the word %q: write %s", path, w, refusedWords[w])
		}
	}
}

// wordsOfGo returns the words of comments and the parts of identifiers, in lower case.
func wordsOfGo(text string) (words []string) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(text)), []byte(text), nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		if kind == token.EOF {
			return words
		}
		if kind == token.COMMENT {
			words = append(words, wordsOfComment(literal)...)
		}
		if kind == token.IDENT {
			for _, part := range partOfName.FindAllString(lookUpName.ReplaceAllString(literal, ""), -1) {
				words = append(words, strings.ToLower(part))
			}
		}
	}
}

var lookUpName = regexp.MustCompile(`[lL]ook(ed)?[uU]p|LookPath`)

// wordsOfSQL returns the words of comments. The names of SQL are part of the schema, and older than this rule.
func wordsOfSQL(text string) (words []string) {
	for _, comment := range sqlComment.FindAllString(text, -1) {
		words = append(words, wordsOfComment(comment)...)
	}
	return words
}

func wordsOfComment(text string) []string {
	return word.FindAllString(strings.ToLower(lookUp.ReplaceAllString(text, "")), -1)
}

func TestWordsAreFoundInNamesAndComments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"package p\n// It looks closer.\nvar told, lookUpName = 1, `a stranger`": {"looks", "told"},
		"package p\nfunc ringBell() { /* heard */ }":                             {"bell", "heard"},
		"package p\n// It is looked up in _p_doorbell.":                          nil,
	} {
		var got []string
		for _, w := range wordsOfGo(text) {
			if _, isRefused := refusedWords[w]; isRefused {
				got = append(got, w)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
	if got := wordsOfSQL("select bell; -- who looks at it"); !slices.Contains(got, "looks") || slices.Contains(got, "bell") {
		t.Errorf("found %q", got)
	}
}
