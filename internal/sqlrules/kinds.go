package sqlrules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// fileOfKinds has the kinds of deliveries of mail as data, and takes the names of lanes apart.
const fileOfKinds = "mail/base/delivery_kinds.sql"

// namesKinds are the other files of mail that may name a kind of delivery, with the reason.
var namesKinds = map[string]string{
	"mail/queues/routing.sql": "it says which recipients go by which kind",
	"mail/base/errors.sql":    "a hint has an example of a filter",
}

// checkKinds holds the rule that what depends on the kind of a delivery is a column of its row: no other file of mail names a kind, or
// parts the name of a lane. Comments on objects may, and so may all files the whole name of a queue of which there is one (POISON/-/-).
func checkKinds(files []File) []Violation {
	kinds := deliveryKinds(files)
	if len(kinds) == 0 {
		return nil
	}
	list := strings.Join(kinds, "|")
	whole := regexp.MustCompile(`\b(?:` + list + `)/-/-`)
	named := regexp.MustCompile(`^(?:` + list + `)$|\b(?:` + list + `)[/|)%*]`)
	var found []Violation
	report := func(f File, t sqltext.Token, text string) {
		found = append(found, Violation{File: f.Name, Line: t.Line, Rule: "kind of delivery", Text: text})
	}
	for _, f := range files {
		if w := wingOf(f.Name); w.Name != "mail" || f.Name == fileOfKinds {
			continue
		}
		for _, s := range f.Statements {
			if s.begins("comment") {
				continue
			}
			for _, tokens := range sqltext.Runs(s.Tokens) {
				for i, t := range tokens {
					if t.Kind == sqltext.Text && namesKinds[f.Name] == "" && named.MatchString(whole.ReplaceAllString(literal(t), "")) {
						report(f, t, t.Text+": ask a column of parley_mail._p_delivery_kind, or add one")
					}
					if partsALane(tokens, i) {
						report(f, t, "call parley_mail._p_parts_of_lane to take the name of a lane apart")
					}
				}
			}
		}
	}
	return found
}

// deliveryKinds gives the kinds of deliveries, the first value of each row that the file inserts.
func deliveryKinds(files []File) []string {
	var kinds []string
	for _, f := range files {
		if f.Name != fileOfKinds {
			continue
		}
		for _, s := range f.Statements {
			if !s.begins("insert", "into") {
				continue
			}
			for i, t := range s.Tokens {
				if t.Kind == sqltext.Text && sqltext.At(s.Tokens, i-1).Is("(") && sqltext.At(s.Tokens, i-2).Is("values", ",") {
					kinds = append(kinds, literal(t))
				}
			}
		}
	}
	return kinds
}

// partsALane reports whether a call of split_part begins at i that cuts a lane or a queue at its slashes.
func partsALane(tokens []sqltext.Token, i int) bool {
	if !tokens[i].Is("split_part") || !sqltext.At(tokens, i+1).Is("(") {
		return false
	}
	arguments := tokens[i+1 : min(sqltext.Closing(tokens, i+1), len(tokens))]
	return slices.ContainsFunc(arguments, func(t sqltext.Token) bool { return t.Is("lane", "queue") }) &&
		slices.ContainsFunc(arguments, func(t sqltext.Token) bool { return t.Kind == sqltext.Text && literal(t) == "/" })
}

// literal gives what a plain text constant holds.
func literal(t sqltext.Token) string {
	return strings.ReplaceAll(strings.TrimSuffix(t.Text[strings.IndexByte(t.Text, '\'')+1:], "'"), "''", "'")
}
