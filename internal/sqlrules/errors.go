package sqlrules

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// raise is the function that makes an error of a row of the table of errors. Where it is created or granted, types stand in the
// place of arguments.
const raise = "parley._p_raise"

// errorRow is one situation in which a number is raised, as a file of errors (base/..._errors.sql) has it.
type errorRow struct {
	file   string
	line   int
	places int  // arguments that its texts have places for
	raised bool // whether a call names it
}

// errorKey is what a call names a row by.
type errorKey struct{ number, situation string }

func (k errorKey) String() string { return k.number + ", '" + k.situation + "'" }

// checkErrors holds the rule that errors are data: a call of _p_raise names a row by constants and gives the arguments that its
// texts take, and each row is raised.
func checkErrors(files []File) []Violation {
	rows, found := errorRows(files)
	for _, f := range files {
		for _, tokens := range runs(f.Tokens) {
			for i := range tokens {
				parts, next := qualified(tokens, i)
				hasTypes := at(tokens, i-1).is("function") || at(tokens, next+1).is("integer")
				if dotted(parts) != raise || !at(tokens, next).is("(") || hasTypes {
					continue
				}
				if text := checkRaise(arguments(tokens, next), rows); text != "" {
					found = append(found, Violation{File: f.Name, Line: tokens[i].Line, Rule: "error", Text: text})
				}
			}
		}
	}
	for key, row := range rows {
		if !row.raised {
			text := "nothing raises " + key.String() + ": strike it"
			found = append(found, Violation{File: row.file, Line: row.line, Rule: "error", Text: text})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// checkRaise reports what is wrong with the arguments of one call, if anything is.
func checkRaise(call [][]Token, rows map[errorKey]*errorRow) string {
	if len(call) < 2 || len(call[0]) != 1 || call[0][0].Kind != Number || len(call[1]) != 1 || call[1][0].Kind != Text {
		return "begin with the number and the situation, as constants: they name a row of base/..._errors.sql, which has the texts"
	}
	key := errorKey{call[0][0].Text, constant(call[1])}
	row := rows[key]
	if row == nil {
		return "no row of base/..._errors.sql is for " + key.String()
	}
	row.raised = true
	if given := len(call) - 2; given != row.places {
		return fmt.Sprintf("%d arguments are given, the texts of %s take %d", given, key, row.places)
	}
	return ""
}

// errorRows reads the rows of the files of errors.
func errorRows(files []File) (map[errorKey]*errorRow, []Violation) {
	rows := map[errorKey]*errorRow{}
	var found []Violation
	for _, f := range files {
		if ok, _ := path.Match("base/*_errors.sql", f.Name); !ok {
			continue
		}
		tokens := code(f.Tokens)
		for i, t := range tokens {
			if !t.is("(") || at(tokens, i+1).Kind != Number || !at(tokens, i-1).is("values", ",") {
				continue
			}
			report := func(format string, args ...any) {
				found = append(found, Violation{File: f.Name, Line: t.Line, Rule: "error", Text: fmt.Sprintf(format, args...)})
			}
			fields := arguments(tokens, i)
			if len(fields) != 5 {
				report("a row has a number, a situation, a message, a cause and a remedy")
				continue
			}
			key := errorKey{fields[0][0].Text, constant(fields[1])}
			places, ok := placesIn(constant(fields[2]), constant(fields[3]), constant(fields[4]))
			switch {
			case rows[key] != nil:
				report("%s has a row already", key)
			case constant(fields[2]) == "" || constant(fields[4]) == "":
				report("%s does not say what happened or what to do", key)
			case !ok:
				report("write places as %%1$s, %%1$I or %%1$L, from 1 on without a gap, and a percent sign as %%%%")
			}
			rows[key] = &errorRow{file: f.Name, line: t.Line, places: places}
		}
	}
	return rows, found
}

// place is where format() puts an argument in, a doubled percent sign, or, alone, one that is not written by its number.
var place = regexp.MustCompile(`%(?:%|([1-9][0-9]*)\$[sIL])?`)

// placesIn counts the arguments that texts have places for; false when a place is not written by its number, or a number is left out.
func placesIn(texts ...string) (int, bool) {
	used := map[int]bool{}
	for _, found := range place.FindAllStringSubmatch(strings.Join(texts, " "), -1) {
		switch {
		case found[0] == "%":
			return 0, false
		case found[0] != "%%":
			number, _ := strconv.Atoi(found[1])
			used[number] = true
		}
	}
	for i := range len(used) {
		if !used[i+1] {
			return 0, false
		}
	}
	return len(used), true
}

// arguments gives what stands between an opening parenthesis and its closing one, cut at the commas.
func arguments(tokens []Token, open int) [][]Token {
	var all [][]Token
	depth := 0
	begin := open + 1
	end := closing(tokens, open)
	for i := begin; i <= end && i < len(tokens); i++ {
		switch {
		case tokens[i].is("(", "["):
			depth++
		case i < end && tokens[i].is(")", "]"):
			depth--
		case i == end || depth == 0 && tokens[i].is(","):
			if i > begin {
				all = append(all, tokens[begin:i])
			}
			begin = i + 1
		}
	}
	return all
}

// constant gives the text of string constants that are put together by ||; it is empty for null.
func constant(tokens []Token) string {
	var text strings.Builder
	for _, t := range tokens {
		if t.Kind == Text {
			text.WriteString(strings.ReplaceAll(t.Text[1:len(t.Text)-1], "''", "'"))
		}
	}
	return text.String()
}
