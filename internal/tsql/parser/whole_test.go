package parser_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// difference names the first place where two trees differ, but for places and texts; it is empty for equal trees.
func difference(a, b any) string { return differ("", reflect.ValueOf(a), reflect.ValueOf(b)) }

func differ(path string, a, b reflect.Value) string {
	if a.IsValid() != b.IsValid() {
		return path + ": one is missing"
	}
	if !a.IsValid() {
		return ""
	}
	if a.Type() != b.Type() {
		return fmt.Sprintf("%s: %s and %s", path, a.Type(), b.Type())
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return path + ": one is nil"
			}
			return ""
		}
		return differ(path, a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s: %d and %d elements", path, a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := differ(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Struct:
		for i := range a.NumField() {
			field := a.Type().Field(i)
			if field.Type == reflect.TypeFor[ast.Place]() || field.Name == "Text" && a.Type() != reflect.TypeFor[ast.Literal]() && field.Type.Kind() == reflect.String {
				continue
			}
			if d := differ(path+"."+field.Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
		return ""
	default:
		if a.Interface() != b.Interface() {
			return fmt.Sprintf("%s: %v and %v", path, a.Interface(), b.Interface())
		}
		return ""
	}
}

// again parses the text of a tree, and says how the second tree differs.
func again(batch *ast.Batch, options parser.Options) (printed, problem string) {
	printed = statements(batch.Statements)
	second, err := parser.Parse(printed, options)
	if err != nil {
		return printed, err.Error()
	}
	return printed, difference(batch.Statements, second.Statements)
}

// same are words that the printer writes in another form.
var same = map[string]string{"PROC": "PROCEDURE", "TRAN": "TRANSACTION", "EXEC": "EXECUTE", "OUT": "OUTPUT", "ROW": "ROWS", "FIRST": "NEXT", "READ_ONLY": "READ"}

// noise are words and signs without a meaning of their own, which the printer writes or leaves out.
var noise = []string{
	";", "AS", "INTO", "OUTER", "INNER", "TRANSACTION", "OUTPUT", "BY", "TARGET", ",", "CURSOR", "READ", "ONLY", "ROLLBACK", "FROM", "TO", "WITH", "(",
	")", "SET", "=", "{", "}",
}

// tokensOf counts the tokens of a batch that have a meaning: names without their quotes, constants, words, signs.
func tokensOf(text string, options parser.Options) map[string]int {
	all, err := token.Split(text)
	if err != nil {
		panic(err)
	}
	counts := map[string]int{}
	for _, t := range all[:len(all)-1] {
		key := strings.ToUpper(t.Text)
		switch t.Kind {
		case token.DoubleQuoted, token.String:
			if t.Kind == token.String || options.StringsInDoubleQuotes {
				key = "'" + t.Text
			}
		case token.NationalString:
			key = "N'" + t.Text
		case token.Binary:
			key = "0x" + t.Text
		case token.Money:
			key = "$" + t.Text
		default:
		}
		if other := same[key]; other != "" && (t.Kind == token.Word || t.Kind == token.Bracketed) {
			key = other
		}
		counts[key]++
	}
	return counts
}

// lost lists the tokens of a batch that are not in the text of its tree.
func lost(text, printed string, options parser.Options) (all []string) {
	source, tree := tokensOf(text, options), tokensOf(printed, options)
	for key, count := range source {
		if alias := strings.ToUpper(strings.TrimPrefix(strings.TrimPrefix(key, "N"), "'")); alias != key && tree[alias]+tree[key] >= source[alias]+count {
			continue // an alias that is written as a string
		}
		if tree[key] < count && !slices.Contains(noise, key) {
			all = append(all, fmt.Sprintf("%s (%d of %d)", key, tree[key], count))
		}
	}
	slices.Sort(all)
	return all
}

// whole parses a batch and says what is wrong with its tree: its text has another tree, or lost tokens.
func whole(text string, options parser.Options) (problem string) {
	batch, err := parser.Parse(text, options)
	if err != nil {
		return err.Error()
	}
	printed, problem := again(batch, options)
	if problem != "" {
		return problem + "\nin " + printed
	}
	if missing := lost(text, printed, options); len(missing) > 0 {
		return fmt.Sprintf("lost %q\nin %s", missing, printed)
	}
	return ""
}
