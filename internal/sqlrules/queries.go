package sqlrules

import (
	"slices"
	"strings"
)

// checkQueries holds the rules on the queries of a file, in function bodies too.
func checkQueries(f File, report reporter) {
	for _, s := range f.Statements {
		row := returnedRow(s)
		for _, tokens := range runs(s.Tokens) {
			for i, t := range tokens {
				switch {
				case t.is("insert") && at(tokens, i+1).is("into"):
					checkInsert(tokens, i+2, report)
				case t.is("*") && isStar(tokens, i):
					checkStar(tokens, i, row, report)
				case t.is("execute") && !isGrantable(tokens, i):
					checkExecute(tokens, i, report)
				}
			}
		}
	}
}

// returnedRow gives the table or view whose rows a function returns, if it is declared so.
func returnedRow(s Statement) string {
	for i, t := range s.Tokens {
		if t.is("returns") && at(s.Tokens, i+1).is("setof") {
			name, _ := qualified(s.Tokens, i+2)
			return dotted(name)
		}
	}
	return ""
}

// checkInsert wants the columns of an insert listed, so that a new column changes no old statement.
func checkInsert(tokens []Token, i int, report reporter) {
	name, next := qualified(tokens, i)
	if at(tokens, next).is("as") {
		next += 2
	}
	if !at(tokens, next).is("(", "default") {
		report(at(tokens, i).Line, "column list", "list the columns of insert into %s", dotted(name))
	}
}

// isStar reports whether the star at i stands for all columns, and is no multiplication nor count(*).
func isStar(tokens []Token, i int) bool {
	if at(tokens, i-1).is(".") {
		return !at(tokens, i+1).is(")") // operator(pg_catalog.*)
	}
	return at(tokens, i-1).is("select", "returning", "distinct", "all") ||
		at(tokens, i-1).is(",") && !at(tokens, i+1).isName() && at(tokens, i+1).Kind != Number && !at(tokens, i+1).is("(")
}

// checkStar wants the columns of a table listed. All columns of a function, of a subquery or of a common
// table expression are fine, because their list stands in our text too; so is a whole row that goes into a
// variable or out of a function of the table's own type, which changes with it.
func checkStar(tokens []Token, i int, row string, report reporter) {
	head := i - 1
	if at(tokens, head).is(".") {
		if at(tokens, head-1).is(")") { // (a_function(...)).*
			return
		}
		head -= 2
	}
	if at(tokens, head).is("select") && at(tokens, head-1).is("in") { // for v_row in select *
		return
	}
	line := tokens[i].Line
	depth := 0
	for j := i + 1; j < len(tokens); j++ {
		t := tokens[j]
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		}
		if depth < 0 || t.is(";") {
			break
		}
		if depth > 0 {
			continue
		}
		if t.is("into") {
			return
		}
		if t.is("from") {
			k := j + 1
			for at(tokens, k).is("only", "lateral") {
				k++
			}
			name, next := qualified(tokens, k)
			if len(name) < 2 || at(tokens, next).is("(") || dotted(name) == row {
				return
			}
			report(line, "select *", "list the columns of %s", dotted(name))
			return
		}
	}
	report(line, "select *", "list the columns instead of *")
}

// isGrantable reports whether the word execute at i is no command: the privilege of grant and revoke, or
// the clause of create trigger.
func isGrantable(tokens []Token, i int) bool {
	return at(tokens, i+1).is("on", "function", "procedure") || at(tokens, i-1).is("grant", "revoke")
}

// checkExecute wants dynamic SQL built by format(), whose %I and %L quote; || quotes nothing.
func checkExecute(tokens []Token, i int, report reporter) {
	for j := i + 1; j < len(tokens) && !tokens[j].is(";", "using"); j++ {
		if tokens[j].is("||") {
			report(tokens[j].Line, "dynamic SQL", "build the text with format() and its %%I and %%L, not with ||")
			return
		}
		if name := strings.ToLower(tokens[j].Text); slices.Contains([]string{"quote_ident", "quote_literal", "quote_nullable"}, name) {
			report(tokens[j].Line, "dynamic SQL", "build the text with format() and its %%I and %%L, not with %s", name)
			return
		}
	}
}
