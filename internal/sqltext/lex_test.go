package sqltext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltext"
)

// letters stand for the kinds in the wanted lists.
var letters = map[sqltext.Kind]string{
	sqltext.Word: "w", sqltext.Quoted: "q", sqltext.Text: "t", sqltext.Body: "b",
	sqltext.Number: "n", sqltext.Symbol: "s", sqltext.Comment: "c",
}

func spell(tokens []sqltext.Token) []string {
	spelled := make([]string, 0, len(tokens))
	for _, t := range tokens {
		spelled = append(spelled, letters[t.Kind]+" "+t.Text)
		for _, inner := range spell(t.Inside) {
			spelled = append(spelled, "> "+inner)
		}
	}
	return spelled
}

func TestLexKnowsEachKindOfToken(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, sql string
		want      []string
	}{
		{"words keep dollars and digits", `a1 b$2 _c é`, []string{"w a1", "w b$2", "w _c", "w é"}},
		{"a comment ends with its line", "a -- B 'c\nd", []string{"w a", "c -- B 'c", "w d"}},
		{"block comments nest", "/* a /* b */ C */ d", []string{"c /* a /* b */ C */", "w d"}},
		{"an open block comment runs to the end", "a /* b /* c */", []string{"w a", "c /* b /* c */"}},
		{"a doubled quote stays in the string", `'it''s' x`, []string{"t 'it''s'", "w x"}},
		{"a backslash is plain in a plain string", `'a\' b`, []string{`t 'a\'`, "w b"}},
		{"a backslash escapes in an escape string", `E'a\' B' c`, []string{`t E'a\' B'`, "w c"}},
		{"prefixed strings are strings", `b'01' X'FF' U&'\0041'`, []string{"t b'01'", "t X'FF'", `t U&'\0041'`}},
		{"a word that ends in e begins no escape string", `type'A'`, []string{"w type", "t 'A'"}},
		{"quoted identifiers keep doubled quotes", `"A""B".c`, []string{`q "A""B"`, "s .", "w c"}},
		{"numbers and parameters", `1 2.5 1e-3 $1 0xFF`, []string{"n 1", "n 2.5", "n 1e-3", "n $1", "n 0xFF"}},
		{"the range of a loop is no decimal point", `1..10`, []string{"n 1", "s ..", "n 10"}},
		{"operators are as long as they can be", `a<=b->>'c'`, []string{"w a", "s <=", "w b", "s ->>", "t 'c'"}},
		{"a standard operator does not end in a sign", `a=-1*-2`, []string{"w a", "s =", "s -", "n 1", "s *", "s -", "n 2"}},
		{"an operator ends before a comment", `a*--b`, []string{"w a", "s *", "c --b"}},
		{"casts, assignments and named arguments are pairs", `a::b := c(d => 1)`, []string{
			"w a", "s ::", "w b", "s :=", "w c", "s (", "w d", "s =>", "n 1", "s )",
		}},
		{"placeholders of format are no upper case", `execute $q$ drop %I %1$L $q$`, []string{
			"w execute", "b $q$ drop %I %1$L $q$", "> w drop", "> s %I", "> s %1$L",
		}},
		{"a function body is cut into tokens", `as $$ a 'B' $$`, []string{"w as", "b $$ a 'B' $$", "> w a", "> t 'B'"}},
		{"so is a do block with its language", `do language plpgsql $$ a $$`, []string{
			"w do", "w language", "w plpgsql", "b $$ a $$", "> w a",
		}},
		{"any other dollar quote is a string", `is $$Text$$`, []string{"w is", "t $$Text$$"}},
		{"a tag hides other dollar quotes", `as $f$ x $$Y$$ $f$`, []string{"w as", "b $f$ x $$Y$$ $f$", "> w x", "> t $$Y$$"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := spell(sqltext.Lex(c.sql)); !slices.Equal(got, c.want) {
				t.Errorf("%s\n got %q\nwant %q", c.sql, got, c.want)
			}
		})
	}
}

func TestLexGivesThePlaceOfEachToken(t *testing.T) {
	t.Parallel()
	var got []string
	var walk func(tokens []sqltext.Token)
	walk = func(tokens []sqltext.Token) {
		for _, token := range tokens {
			got = append(got, fmt.Sprintf("%d:%d", token.Line, token.Column))
			walk(token.Inside)
		}
	}
	walk(sqltext.Lex("a 'x\ny' b\n  as $$\n  c\n$$ d"))
	if want := []string{"1:1", "1:3", "2:4", "3:3", "3:6", "4:3", "5:4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The tokens of any text and the blanks between them are the text, and the places are right.
func TestLexLosesNothing(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "Select", " ", "\n", "'", "''", `"`, "$$", "$q$", "as", "--", "/*", "*/", "1", ".", "\\", "e'", "é", ";", "(", ")", "-", "%I"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
		lines := strings.SplitAfter(text, "\n")
		passed := 0
		for _, token := range sqltext.Lex(text) {
			offset := token.Column - 1
			for _, line := range lines[:token.Line-1] {
				offset += len(line)
			}
			if strings.TrimSpace(text[passed:offset]) != "" {
				t.Fatalf("%q: lost %q", text, text[passed:offset])
			}
			if !strings.HasPrefix(text[offset:], token.Text) || token.Text == "" {
				t.Fatalf("%q: token %q is not at %d:%d", text, token.Text, token.Line, token.Column)
			}
			passed = offset + len(token.Text)
		}
		if strings.TrimSpace(text[passed:]) != "" {
			t.Fatalf("%q: lost %q", text, text[passed:])
		}
	})
}
