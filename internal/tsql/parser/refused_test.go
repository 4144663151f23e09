package parser_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/parser"
)

// A batch with one fault is refused as a whole, with the number, line, column and text of SQL Server.
func TestFaultsAreRefusedWithNumberAndPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		batch        string
		number       int
		line, column int
		message      string
	}{
		{"SELECT 1\nSELECT * FORM t x y", 102, 2, 10, "near 'FORM'"},
		{"SELECT FROM t", 156, 1, 8, "near the keyword 'FROM'"},
		{"SELECT 1,", 102, 1, 10, "near ','"},
		{"SELECT 'a", 105, 1, 8, "Unclosed quotation mark after the character string 'a'"},
		{"SELECT 1 AS []", 1038, 1, 13, "missing or empty"},
		{"SELECT [a", 105, 1, 8, "Unclosed quotation mark"},
		{"SELECT 1 /* a /* b */", 113, 1, 10, "Missing end comment mark"},
		{"SELECT 1 WITH c AS (SELECT 1 AS a) SELECT a FROM c", 319, 1, 10, "must be terminated with a semicolon"},
		{"SELECT * FROM t WITH c AS (SELECT 1 AS a) SELECT a FROM c", 319, 1, 17, "semicolon"},
		{"IF 1 = 1\n  SELECT 1 SELECT 2\nELSE SELECT 3", 156, 3, 1, "near the keyword 'ELSE'"},
		{"BEGIN SELECT 1", 102, 1, 15, "near '1'"},
		{"BEGIN END", 156, 1, 7, "near the keyword 'END'"},
		{"SELECT 1 = 1", 102, 1, 10, "near '='"},
		{"IF @a PRINT 'x'", 4145, 1, 7, "non-boolean"},
		{"SELECT (1 = 1)", 102, 1, 11, "near '='"},
		{"BREAK", 135, 1, 1, "BREAK"},
		{"IF 1 = 1 CONTINUE", 136, 1, 10, "CONTINUE"},
		{"GOTO missing", 133, 1, 6, "'missing'"},
		{"a: SELECT 1 a: SELECT 2", 132, 1, 13, "'a'"},
		{"SELECT 1\nCREATE PROCEDURE p AS SELECT 1", 111, 2, 1, "'CREATE PROCEDURE' must be the first statement"},
		{"DECLARE @a int CREATE TRIGGER tr ON t FOR INSERT AS SELECT 1", 111, 1, 16, "'CREATE TRIGGER'"},
		{"MERGE t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", 10713, 1, 54, "semi-colon"},
		{"SELECT * FROM a.b.c.d.e", 117, 1, 22, "maximum number of prefixes"},
		{"SELECT * FROM a, b WHERE a.i *= b.i", 4147, 1, 30, "LEFT JOIN"},
		{"SET NOSUCH ON", 195, 1, 5, "'NOSUCH' is not a recognized SET option"},
		{"CREATE QUEUE q WITH STATE = ON", 102, 1, 21, "near 'STATE'"},
		{"CREATE CONTRACT c AUTHORIZATION dbo", 102, 1, 36, "near 'dbo'"},
		{"CREATE CONTRACT c (m SENT BY NOBODY)", 102, 1, 30, "near 'NOBODY'"},
		{"CREATE SERVICE s (c)", 102, 1, 18, "near '('"},
		{"BEGIN DIALOG @h FROM SERVICE a TO SERVICE b", 102, 1, 43, "near 'b'"},
		{"BEGIN DIALOG @h FROM SERVICE a TO SERVICE 'b' WITH ENCRYPTION = OFF, ENCRYPTION = ON", 156, 1, 83, "near the keyword 'ON'"},
		{"SEND ON CONVERSATION MESSAGE TYPE m", 102, 1, 22, "near 'MESSAGE'"},
		{"RECEIVE TOP 1 * FROM q", 102, 1, 13, "near '1'"},
		{"WAITFOR (SELECT 1)", 156, 1, 10, "near the keyword 'SELECT'"},
		{"WAITFOR (RECEIVE * FROM q) TIMEOUT 5", 102, 1, 28, "near 'TIMEOUT'"},
		{"END CONVERSATION @h WITH ERROR = 1", 102, 1, 35, "near '1'"},
		{"SELECT 1 frob SELECT 2 frob nicate", 102, 1, 29, "near 'nicate'"},
		{"frobnicate 1, 2 SELECT ?", 102, 1, 24, "near '?'"},
		{"SELECT \x01 `", 102, 1, 10, "near '`'"},
		{"SELECT " + strings.Repeat("a", 129), 103, 1, 8, "Maximum length is 128"},
		{"SELECT " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), 191, 1, 0, "nested too deeply"},
		{"SELECT \"" + strings.Repeat("a", 129) + "\"", 103, 1, 8, "Maximum length is 128"},
		{"EXEC p @a = 10 OUT", 179, 1, 16, "OUTPUT option"},
		{"CREATE FROB x", 102, 1, 8, "near 'FROB'"},
		{"PRINT 'é'\nPRINT 'é' é", 102, 2, 11, "near 'é'"},
		{"RAISERROR ('x', 16)", 102, 1, 19, "near ')'"},
	} {
		batch, err := parser.Parse(c.batch, parser.Options{})
		var fault *parser.Error
		if batch != nil || !errors.As(err, &fault) {
			t.Errorf("%.80q: no error", c.batch)
			continue
		}
		if fault.Number != c.number || fault.Line != c.line || c.column != 0 && fault.Column != c.column || !strings.Contains(fault.Message, c.message) {
			t.Errorf("%.80q: %d at %d:%d %s, want %d at %d:%d %s", c.batch, fault.Number, fault.Line, fault.Column, fault.Message,
				c.number, c.line, c.column, c.message)
		}
		if fault.Severity < 15 || fault.State == 0 {
			t.Errorf("%.80q: severity %d, state %d", c.batch, fault.Severity, fault.State)
		}
	}
}

// An error of syntax says which tokens would have fitted.
func TestFaultsSayWhatWasExpected(t *testing.T) {
	t.Parallel()
	for batch, expected := range map[string]string{
		"CREATE CONTRACT c (m SENT BY x)": "INITIATOR, TARGET, ANY",
		"SEND ON CONVERSATION x":          "a conversation handle",
		"RECEIVE * FORM q":                "FROM",
		"INSERT t x":                      "VALUES, SELECT, EXECUTE, DEFAULT VALUES",
	} {
		_, err := parser.Parse(batch, parser.Options{})
		var fault *parser.Error
		if !errors.As(err, &fault) || fault.Expected != expected {
			t.Errorf("%s: %v, expected %q", batch, err, fault.Expected)
		}
	}
}

// Signs bind as additions do, and other operators by the documented precedence.
func TestOperatorsBindByTheDocumentedPrecedence(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"-100.0 / -100.0 * 10.0": "(- (100.0 / (- (100.0 * 10.0))))",
		"1 + 2 * 3":              "(1 + (2 * 3))",
		"1 - 2 - 3":              "((1 - 2) - 3)",
		"1 | 2 & 3 ^ 4 + 5":      "((((1 | 2) & 3) ^ 4) + 5)",
		"~1 * 2":                 "((~ 1) * 2)",
		"~ ~1":                   "(~ (~ 1))",
		"1 - -2":                 "(1 - (- 2))",
	} {
		batch, err := parser.Parse("SELECT "+expression, parser.Options{})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		item := batch.Statements[0].(*ast.Select).Query.Body.(*ast.Specification).Items[0].(*ast.ResultColumn)
		if got := grouped(item.Value); got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
}

// grouped writes an expression with parentheses around each operator.
func grouped(e ast.Expression) string {
	switch n := e.(type) {
	case *ast.Arithmetic:
		return "(" + grouped(n.Left) + " " + n.Operator + " " + grouped(n.Right) + ")"
	case *ast.Unary:
		return "(" + n.Operator + " " + grouped(n.Operand) + ")"
	default:
		return expression(e)
	}
}

// AND binds more tightly than OR, NOT more tightly than AND; INTERSECT more tightly than UNION.
func TestConditionsAndSetsBindByPrecedence(t *testing.T) {
	t.Parallel()
	batch, err := parser.Parse("IF NOT @a = 1 AND @b = 2 OR @c = 3 SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", parser.Options{})
	if err != nil {
		t.Fatal(err)
	}
	statement := batch.Statements[0].(*ast.If)
	or := statement.Condition.(*ast.Logical)
	and := or.Left.(*ast.Logical)
	if _, is := and.Left.(*ast.Not); or.Operator != "OR" || and.Operator != "AND" || !is {
		t.Errorf("%s of %s", or.Operator, and.Operator)
	}
	union := statement.Then.(*ast.Select).Query.Body.(*ast.SetOperation)
	if right, is := union.Right.(*ast.SetOperation); union.Operator != "UNION" || !is || right.Operator != "INTERSECT" {
		t.Errorf("%s", union.Operator)
	}
}

// The characters of a comparison may have blanks between them.
func TestComparisonsMayHaveBlanks(t *testing.T) {
	t.Parallel()
	for written, operator := range map[string]string{"! =": "!=", "< >": "<>", "> =": ">=", "<\n=": "<=", "! >": "!>"} {
		batch, err := parser.Parse("IF @a "+written+" 1 PRINT 'x'", parser.Options{})
		if err != nil {
			t.Errorf("%q: %v", written, err)
			continue
		}
		if got := batch.Statements[0].(*ast.If).Condition.(*ast.Comparison).Operator; got != operator {
			t.Errorf("%q is %q", written, got)
		}
	}
}

// QUOTED_IDENTIFIER decides what "text" is, from the SET in a batch on.
func TestDoubleQuotesFollowTheSetting(t *testing.T) {
	t.Parallel()
	batch, err := parser.Parse(`SELECT "a" SET QUOTED_IDENTIFIER ON SELECT "a"`, parser.Options{StringsInDoubleQuotes: true})
	if err != nil {
		t.Fatal(err)
	}
	value := func(at int) ast.Expression {
		return batch.Statements[at].(*ast.Select).Query.Body.(*ast.Specification).Items[0].(*ast.ResultColumn).Value
	}
	if literal, is := value(0).(*ast.Literal); !is || literal.Kind != ast.String || literal.Text != "a" {
		t.Errorf("OFF: %#v", value(0))
	}
	if _, is := value(2).(*ast.ColumnReference); !is {
		t.Errorf("ON: %#v", value(2))
	}
}

// A procedure takes the rest of its batch, and keeps its text with the comments.
func TestProcedureKeepsTheTextOfItsBatch(t *testing.T) {
	t.Parallel()
	text := "CREATE PROC p AS\nBEGIN SELECT 1 END\n-- then\nSELECT 2 -- last\n"
	batch, err := parser.Parse("\n"+text, parser.Options{})
	if err != nil {
		t.Fatal(err)
	}
	procedure := batch.Statements[0].(*ast.Procedure)
	if procedure.Text != text || len(procedure.Body) != 2 || procedure.Line != 2 {
		t.Errorf("%q with %d statements at line %d", procedure.Text, len(procedure.Body), procedure.Line)
	}
}

// A node knows its line, its column in characters and its bytes.
func TestNodesHavePlaces(t *testing.T) {
	t.Parallel()
	text := "PRINT 'é';\r\n  SET @ä = 'x' + /* c */ dbo.f(@b)"
	batch, err := parser.Parse(text, parser.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set := batch.Statements[1].(*ast.SetVariable)
	call := set.Value.(*ast.Arithmetic).Right
	for node, want := range map[ast.Node]string{set: "SET @ä = 'x' + /* c */ dbo.f(@b)", call: "dbo.f(@b)"} {
		if at := node.At(); text[at.Offset:at.End] != want {
			t.Errorf("%q, want %q", text[at.Offset:at.End], want)
		}
	}
	if at := call.At(); at.Line != 2 || at.Column != 26 {
		t.Errorf("line %d, column %d", at.Line, at.Column)
	}
}

// The tree of operators in a row is as deep as the row is long, and what walks it may not use up the stack: that would end the process, and
// with it the daemon that runs the procedures of others.
func TestALongRowOfOperatorsIsRefused(t *testing.T) {
	t.Parallel()
	const many = 30_000
	for name, batch := range map[string]string{
		"sums": "PRINT 1" + strings.Repeat("+1", many), "products": "PRINT 1" + strings.Repeat("*1", many),
		"OR": "IF 1=1" + strings.Repeat(" OR 1=1", many) + " PRINT 1", "AND": "IF 1=1" + strings.Repeat(" AND 1=1", many) + " PRINT 1",
		"UNION": "SELECT 1" + strings.Repeat(" UNION SELECT 1", many), "INTERSECT": "SELECT 1" + strings.Repeat(" INTERSECT SELECT 1", many),
		"joins":   "SELECT 1 FROM a" + strings.Repeat(" CROSS JOIN a", many),
		"COLLATE": "PRINT 'a'" + strings.Repeat(" COLLATE Latin1_General_BIN", many), "methods": "SELECT @x" + strings.Repeat(".query('a')", many),
		"zones": "SELECT @x" + strings.Repeat(" AT TIME ZONE 'UTC'", many), "blocks": strings.Repeat("BEGIN ", many) + "PRINT 1" + strings.Repeat(" END", many),
	} {
		_, err := parser.Parse(batch, parser.Options{})
		if refused, is := errors.AsType[*parser.Error](err); !is || refused.Number != 191 {
			t.Errorf("%s: %v, want error 191", name, err)
		}
	}
	if _, err := parser.Parse(strings.Repeat("PRINT 1"+strings.Repeat("+1", 15_000)+"\n", 3), parser.Options{}); err != nil {
		t.Errorf("each statement has its own: %v", err)
	}
}
