package postgresql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// verbs are those with which a statement of a definition may begin: statements that end or change the transaction of the host, its role or
// its session are none of them.
var verbs = []string{"select", "insert", "update", "delete", "merge", "with", "values", "table", "call"}

// checkStatement returns an error unless a text is one statement that works on rows, and gives the highest of its parameters.
func checkStatement(text string) (parameters int, err error) {
	tokens := sqltext.Code(sqltext.Lex(text))
	if len(tokens) == 0 {
		return 0, errors.New("the statement is empty")
	}
	if !tokens[0].Is(verbs...) && !tokens[0].Is("(") {
		return 0, fmt.Errorf("a statement does not begin with %s here, but with one of %s", tokens[0].Text, strings.Join(verbs, ", "))
	}
	for i, token := range tokens {
		if name, hides := hiding(tokens, i); hides {
			return 0, fmt.Errorf("%s runs SQL that is not seen here, or changes the settings of the transaction", name)
		}
		if token.Is(";") && i < len(tokens)-1 {
			return 0, errors.New("there is more than one statement")
		}
		if number, ok := strings.CutPrefix(token.Text, "$"); ok && token.Kind == sqltext.Number {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > 1000 {
				return 0, fmt.Errorf("the parameter %s is not from $1 to $1000", token.Text)
			}
			parameters = max(parameters, n)
		}
	}
	return parameters, nil
}

// hidden are functions of the server that run the text of a statement, and the one that changes settings, the role among them.
var hidden = []string{
	"set_config", "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml", "ts_stat", "ts_rewrite",
}

// hiding says whether a token is the name of such a function, or one that is written by the numbers of its characters.
func hiding(tokens []sqltext.Token, i int) (name string, hides bool) {
	token := tokens[i]
	if token.Kind == sqltext.Quoted && sqltext.At(tokens, i-1).Is("&") && sqltext.At(tokens, i-2).Is("u") ||
		strings.HasPrefix(strings.ToLower(token.Text), `u&"`) {
		return token.Text, true
	}
	return token.Text, token.IsName() && slices.Contains(hidden, token.Name())
}

// changes says whether a statement may change rows, as far as its text shows.
func changes(text string) bool {
	tokens := sqltext.Code(sqltext.Lex(text))
	return slices.ContainsFunc(tokens, func(t sqltext.Token) bool { return t.Is("insert", "delete", "merge", "call") }) ||
		slices.ContainsFunc(slices.Collect(indices(tokens)), func(i int) bool {
			// for update and for no key update lock.
			return tokens[i].Is("update") && !sqltext.At(tokens, i-1).Is("for", "key")
		})
}

func indices(tokens []sqltext.Token) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range tokens {
			if !yield(i) {
				return
			}
		}
	}
}

// quotedName gives a name such as shop.orders, of which each part is as the catalog has it.
func quotedName(name string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", errors.New("the name has more than a schema and a name")
	}
	for i, part := range parts {
		if part == "" || strings.ContainsAny(part, "\"\x00") {
			return "", errors.New("the name is empty, or has a quote in it")
		}
		parts[i] = quoted(part)
	}
	return strings.Join(parts, "."), nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
