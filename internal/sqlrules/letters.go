package sqlrules

import (
	"slices"

	"github.com/parley-broker/parley/internal/sqltext"
)

// comparesTexts names the files that make letters small in what people have written, to compare it with what others have written, with the
// reason. There the rules of the database serve.
var comparesTexts = map[string]string{
	"mail/views/waiting_messages.sql":    "patterns of a filter and the fields of messages",
	"mail/views/message_views.sql":       "patterns of a filter and the fields of messages",
	"mail/views/message_filter.sql":      "patterns of a filter",
	"mail/views/conditions.sql":          "patterns of a condition and the properties of messages",
	"mail/views/sorting.sql":             "messages are sorted by what their fields say",
	"mail/submission/render_message.sql": "a header is sought among those of the same message",
	"parley/catalog/named_objects.sql":   "a hint names what is written almost so",
	"parley/poison/retry_matching.sql":   "a part of the text of an error",
}

// checkLetters wants words of ours to be compared by the letters of ASCII: in a Turkish database the small letter of I is ı.
func checkLetters(f File, report reporter) {
	if comparesTexts[f.Name] != "" {
		return
	}
	for _, tokens := range sqltext.Runs(f.Tokens) {
		for i, t := range tokens {
			if !t.Is("upper") && !t.Is("lower") && !t.Is("initcap") || !sqltext.At(tokens, i+1).Is("(") {
				continue
			}
			end := min(sqltext.Closing(tokens, i+1), len(tokens))
			if !slices.ContainsFunc(tokens[i+1:end], func(t sqltext.Token) bool { return t.Is("collate") }) {
				report(t.Line, "letters", `write %s(... collate "C"): the rules of the database say which letter an i becomes`, t.Text)
			}
		}
	}
}
