package token_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/token"
)

// show writes a token as kind and text.
func show(t token.Token) string {
	kinds := []string{
		"end", "word", "bracket", "quote", "var", "system", "pseudo", "int", "decimal", "float", "money", "string", "nstring", "binary", "op",
	}
	return kinds[t.Kind] + ":" + t.Text
}

// Constants, names, variables and operators are cut as the documentation says.
func TestTokensFollowTheRulesOfTheLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SELECT a1,[b]]c],\"d\"\"e\"":  "word:SELECT word:a1 op:, bracket:b]c op:, quote:d\"e",
		"'it''s' N'x' n'y' nx":         "string:it's nstring:x nstring:y word:nx",
		"12 1.5 .5 1. 1e5 1.5E-3 1e":   "int:12 decimal:1.5 decimal:.5 decimal:1. float:1e5 float:1.5E-3 float:1e",
		"0x 0xAf 0xG 1a":               "binary: binary:Af binary: word:G int:1 word:a",
		"$1,234.5 $ £3 €.5 $-1":        "money:1234.5 money: money:3 money:.5 money: op:- int:1",
		"@a @@ROWCOUNT @@x$ #t ##g _a": "var:@a system:@@ROWCOUNT system:@@x$ word:#t word:##g word:_a",
		"$action $x":                   "pseudo:$action pseudo:$x",
		"a<=b<>c!=d!<e += ::||":        "word:a op:<= word:b op:<> word:c op:!= word:d op:!< word:e op:+= op::: op:||",
		"a--x\nb/*c/*d*/e*/f":          "word:a word:b word:f",
		"größe éa":                     "word:größe word:éa",
		"'a\\\nb' 0xA\\\nB":            "string:ab binary:AB",
		"a\u00a0b\ufeffc":              "word:a word:b word:c",
		"'--' [/*] \"'\"":              "string:-- bracket:/* quote:'",
	} {
		tokens, err := token.Split(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got []string
		for _, one := range tokens[:len(tokens)-1] {
			got = append(got, show(one))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q:\n%s, want\n%s", text, strings.Join(got, " "), want)
		}
	}
}

// A keyword is reserved by the published list; other words are names too.
func TestReservedWordsNameNothing(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]bool{"select": false, "SEND": true, "Receive": true, "[select]": true, "type": true, "Message": true, "end": false} {
		tokens, err := token.Split(text)
		if err != nil || tokens[0].IsName() != name {
			t.Errorf("%s: name %v, %v", text, tokens[0].IsName(), err)
		}
	}
}

// Lines are counted by their ends, columns in characters, offsets in bytes.
func TestTokensKnowTheirPlace(t *testing.T) {
	t.Parallel()
	tokens, err := token.Split("é = 'a\r\nb'\r\n\tc")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, one := range tokens {
		got += fmt.Sprintf("%d:%d %d-%d to %d; ", one.Line, one.Column, one.Offset, one.End, one.LastLine)
	}
	if want := "1:1 0-2 to 1; 1:3 3-4 to 1; 1:5 5-11 to 2; 3:2 14-15 to 3; 3:3 15-15 to 3; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// No text makes the lexer panic; tokens stand in their order, do not overlap, and between them are blanks and comments alone.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{"SELECT 'a''b', [c]]d], 0x1F, $1.5, @a, @@b -- x\n/* /* */ */ 1e5", "N'x' \"y\" <> += $action £", "'a\\\nb'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := token.Split(text)
		if err != nil {
			return
		}
		at := 0
		for _, one := range tokens {
			if one.Offset < at || one.End < one.Offset || one.End > len(text) {
				t.Fatalf("%q: token at %d to %d behind %d", text, one.Offset, one.End, at)
			}
			if one.Kind != token.EOF && one.End == one.Offset {
				t.Fatalf("%q: empty token at %d", text, one.Offset)
			}
			if between, err := token.Split(text[at:one.Offset]); err != nil || len(between) != 1 {
				t.Fatalf("%q: %q is no token", text, text[at:one.Offset])
			}
			at = one.End
		}
	})
}
