package sqlrules

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// makers are the functions that make an error of a row of the table of errors, with the files of rows that they name. Where one is
// created or granted, types stand in the place of arguments.
var makers = map[string][]string{
	"parley._p_raise":           {"parley/base/definition_errors.sql", "parley/base/conversation_errors.sql"},
	"parley._p_error_of":        {"parley/base/message_errors.sql", "parley/base/status_errors.sql"},
	"parley._p_status":          {"parley/base/status_errors.sql"},
	"parley._p_numbered_status": {"parley/base/status_errors.sql"},
}

// makersFile is where the makers stand, which pass on the number that they were given.
const makersFile = "parley/base/errors.sql"

// daemonFile has the errors of the daemon, whose numbers stand in Go: internal/layering holds that.
const daemonFile = "parley/base/daemon_errors.sql"

// carriers are the functions that take the text of an error on its way: never one that is written out where they are called.
var carriers = []string{
	"parley._p_break_conversations", "parley._p_drop_endpoints_of_service", "parley._p_end_refused", "parley._p_hold_outgoing",
	"parley._p_park", "parley._p_delay_transmission", "parley._p_trace_dialog", "parley._p_unbind", "parley._p_verdict_of",
}

// errorRow is one situation in which a number is raised or sent, as a file of errors (parley/base/..._errors.sql) has it.
type errorRow struct {
	file   string
	line   int
	places int  // arguments that its texts have places for
	used   bool // whether a call names it
}

// errorKey is the key by which a call names a row.
type errorKey struct{ number, situation string }

func (k errorKey) String() string { return k.number + ", '" + k.situation + "'" }

// checkErrors holds the rule that errors are data: a call of a maker names a row by constants and gives the arguments that its
// texts take, each row is named, and no text is written out where it is sent.
func checkErrors(files []File) []Violation {
	rows, found := errorRows(files)
	for _, f := range files {
		for _, tokens := range sqltext.Runs(f.Tokens) {
			for i := range tokens {
				parts, next := sqltext.Qualified(tokens, i)
				hasTypes := sqltext.At(tokens, i-1).Is("function") || sqltext.At(tokens, next+1).Is("integer")
				if !sqltext.At(tokens, next).Is("(") || hasTypes {
					continue
				}
				text, name := "", dotted(parts)
				if isPassedOn := f.Name == makersFile && sqltext.At(tokens, next+1).Is("number"); makers[name] != nil && !isPassedOn {
					text = checkMaker(name, arguments(tokens, next), rows)
				} else if slices.Contains(carriers, name) {
					text = checkCarrier(arguments(tokens, next))
				}
				if text != "" {
					found = append(found, Violation{File: f.Name, Line: tokens[i].Line, Rule: "error", Text: text})
				}
			}
		}
	}
	for key, row := range rows {
		if !row.used && row.file != daemonFile {
			text := "nothing raises or sends " + key.String() + ": remove it"
			found = append(found, Violation{File: row.file, Line: row.line, Rule: "error", Text: text})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// checkMaker reports what is wrong with the arguments of one call, if anything is.
func checkMaker(name string, call [][]sqltext.Token, rows map[errorKey]*errorRow) string {
	if len(call) < 2 || len(call[0]) != 1 || call[0][0].Kind != sqltext.Number || len(call[1]) != 1 || call[1][0].Kind != sqltext.Text {
		return "begin with the number and the situation, as constants: they name a row of parley/base/..._errors.sql, which has the texts"
	}
	key := errorKey{call[0][0].Text, constant(call[1])}
	row := rows[key]
	if row == nil || !slices.Contains(makers[name], row.file) {
		return "no row of " + strings.Join(makers[name], " or ") + " is for " + key.String()
	}
	row.used = true
	if given := len(call) - 2; given != row.places {
		return fmt.Sprintf("%d arguments are given, the texts of %s take %d", given, key, row.places)
	}
	return ""
}

// checkCarrier reports a sentence among the arguments of one call, if there is one.
func checkCarrier(call [][]sqltext.Token) string {
	for _, argument := range call {
		if len(argument) > 0 && argument[0].Kind == sqltext.Text && strings.Contains(argument[0].Text, " ") {
			return "give an error or a status of parley/base/..._errors.sql, not " + argument[0].Text
		}
	}
	return ""
}

// errorRows reads the rows of the files of errors.
func errorRows(files []File) (map[errorKey]*errorRow, []Violation) {
	rows := map[errorKey]*errorRow{}
	var found []Violation
	for _, f := range files {
		if ok, _ := path.Match("parley/base/*_errors.sql", f.Name); !ok {
			continue
		}
		tokens := sqltext.Code(f.Tokens)
		for i, t := range tokens {
			if !t.Is("(") || sqltext.At(tokens, i+1).Kind != sqltext.Number || !sqltext.At(tokens, i-1).Is("values", ",") {
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

// arguments gives the text between an opening parenthesis and its closing one, cut at the commas.
func arguments(tokens []sqltext.Token, open int) [][]sqltext.Token {
	var all [][]sqltext.Token
	depth := 0
	begin := open + 1
	end := sqltext.Closing(tokens, open)
	for i := begin; i <= end && i < len(tokens); i++ {
		switch {
		case tokens[i].Is("(", "["):
			depth++
		case i < end && tokens[i].Is(")", "]"):
			depth--
		case i == end || depth == 0 && tokens[i].Is(","):
			if i > begin {
				all = append(all, tokens[begin:i])
			}
			begin = i + 1
		}
	}
	return all
}

// constant gives the text of string constants that are put together by ||; it is empty for null.
func constant(tokens []sqltext.Token) string {
	var text strings.Builder
	for _, t := range tokens {
		if t.Kind == sqltext.Text {
			text.WriteString(strings.ReplaceAll(t.Text[1:len(t.Text)-1], "''", "'"))
		}
	}
	return text.String()
}
