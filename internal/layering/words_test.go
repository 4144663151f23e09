package layering

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// refusedWords have a word of docs/reference/glossary.md in their place.
var refusedWords = map[string]string{
	"bed": "fixture or cluster", "bell": "notifier or wake-up", "bells": "notifiers or wake-ups",
	"doorbell": "notifier or wake-up", "doorbells": "notifiers or wake-ups", "evil": "fault injection",
	"stranger": "unknown peer, or outsider", "strangers": "unknown peers, or outsiders", "strike": "retry", "strikes": "retries",
}

// partOfName finds words, also those that make up an identifier.
var partOfName = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// One word stands for one thing: the words of the list are in no comment, text and name of the program and on no page.
func TestWordsAreThoseOfTheGlossary(t *testing.T) {
	t.Parallel()
	for _, path := range paths(t, ".go", ".sql", ".md") {
		text := read(t, path)
		if generated.MatchString(text) || strings.HasPrefix(path, "internal/layering/") || strings.HasPrefix(path, "spec/") {
			continue
		}
		var found []string
		for _, w := range partOfName.FindAllString(text, -1) {
			if w = strings.ToLower(w); refusedWords[w] != "" && !slices.Contains(found, w) {
				found = append(found, w)
				t.Errorf("%s has the word %q: write %s", path, w, refusedWords[w])
			}
		}
	}
}
