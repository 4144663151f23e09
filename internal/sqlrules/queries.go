package sqlrules

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// checkQueries holds the rules on the queries of a file, in function bodies too.
func checkQueries(f File, report reporter) {
	for _, s := range f.Statements {
		row := returnedRow(s)
		for _, tokens := range sqltext.Runs(s.Tokens) {
			for i, t := range tokens {
				switch {
				case t.Is("insert") && sqltext.At(tokens, i+1).Is("into"):
					checkInsert(tokens, i+2, report)
				case t.Is("*") && isStar(tokens, i):
					checkStar(tokens, i, row, report)
				case t.Is("execute") && !isGrantable(tokens, i):
					checkExecute(tokens, i, report)
				}
			}
		}
	}
}

// returnedRow gives the table or view whose rows a function returns, if it is declared so.
func returnedRow(s Statement) string {
	for i, t := range s.Tokens {
		if t.Is("returns") && sqltext.At(s.Tokens, i+1).Is("setof") {
			name, _ := sqltext.Qualified(s.Tokens, i+2)
			return dotted(name)
		}
	}
	return ""
}

// checkInsert wants the columns of an insert listed, so that a new column changes no old statement. Rows of the table's own type, which
// change with it, need no list: insert into t select r.* from unnest(rows) as r.
func checkInsert(tokens []sqltext.Token, i int, report reporter) {
	name, next := sqltext.Qualified(tokens, i)
	if sqltext.At(tokens, next).Is("as") {
		next += 2
	}
	if !sqltext.At(tokens, next).Is("(", "default") && !isOfRows(tokens, next) {
		report(sqltext.At(tokens, i).Line, "column list", "list the columns of insert into %s", dotted(name))
	}
}

// isOfRows reports whether the query at i gives whole rows of an array, and nothing else.
func isOfRows(tokens []sqltext.Token, i int) bool {
	row := sqltext.At(tokens, i+1)
	for k, word := range []string{"select", row.Text, ".", "*", "from", "unnest", "("} {
		if k != 1 && !sqltext.At(tokens, i+k).Is(word) {
			return false
		}
	}
	for depth, k := 0, i+6; k < len(tokens); k++ {
		switch t := tokens[k]; {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		}
		if depth == 0 {
			return sqltext.At(tokens, k+1).Is("as") && sqltext.At(tokens, k+2).Name() == row.Name()
		}
	}
	return false
}

// isStar reports whether the star at i stands for all columns, and is no multiplication nor count(*).
func isStar(tokens []sqltext.Token, i int) bool {
	if sqltext.At(tokens, i-1).Is(".") {
		return !sqltext.At(tokens, i+1).Is(")") // operator(pg_catalog.*)
	}
	return sqltext.At(tokens, i-1).Is("select", "returning", "distinct", "all") ||
		sqltext.At(tokens, i-1).Is(",") && !sqltext.At(tokens, i+1).IsName() &&
			sqltext.At(tokens, i+1).Kind != sqltext.Number && !sqltext.At(tokens, i+1).Is("(")
}

// checkStar wants the columns of a table listed. All columns of a function, of a subquery or of a common table expression are fine, because
// their list stands in our text too. So is a whole row that goes into a variable or out of a function of the table's own type, which
// changes with it.
func checkStar(tokens []sqltext.Token, i int, row string, report reporter) {
	head := i - 1
	if sqltext.At(tokens, head).Is(".") {
		if sqltext.At(tokens, head-1).Is(")") { // (a_function(...)).*
			return
		}
		head -= 2
	}
	if sqltext.At(tokens, head).Is("select") && sqltext.At(tokens, head-1).Is("in") { // for v_row in select *
		return
	}
	line := tokens[i].Line
	depth := 0
	for j := i + 1; j < len(tokens); j++ {
		t := tokens[j]
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		}
		if depth < 0 || t.Is(";") {
			break
		}
		if depth > 0 {
			continue
		}
		if t.Is("into") {
			return
		}
		if t.Is("from") {
			k := j + 1
			for sqltext.At(tokens, k).Is("only", "lateral") {
				k++
			}
			name, next := sqltext.Qualified(tokens, k)
			if len(name) < 2 || sqltext.At(tokens, next).Is("(") || dotted(name) == row {
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
func isGrantable(tokens []sqltext.Token, i int) bool {
	return sqltext.At(tokens, i+1).Is("on", "function", "procedure") || sqltext.At(tokens, i-1).Is("grant", "revoke")
}

// checkExecute wants dynamic SQL built by format(), whose %I and %L quote; || quotes nothing.
func checkExecute(tokens []sqltext.Token, i int, report reporter) {
	for j := i + 1; j < len(tokens) && !tokens[j].Is(";", "using"); j++ {
		if tokens[j].Is("||") {
			report(tokens[j].Line, "dynamic SQL", "build the text with format() and its %%I and %%L, not with ||")
			return
		}
		if name := strings.ToLower(tokens[j].Text); slices.Contains([]string{"quote_ident", "quote_literal", "quote_nullable"}, name) {
			report(tokens[j].Line, "dynamic SQL", "build the text with format() and its %%I and %%L, not with %s", name)
			return
		}
	}
}
