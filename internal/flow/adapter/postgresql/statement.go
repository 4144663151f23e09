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
