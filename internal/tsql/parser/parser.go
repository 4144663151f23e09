package parser

import (
	"errors"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// deepest is how many rules may be open at once, so that no batch uses up the stack.
const deepest = 2000

// longest is how many operators of a statement may stand in a row, each over the ones before it: the tree is as deep as the row is long.
const longest = 20_000

// Options are the settings of the session that decide how a batch is read.
type Options struct {
	// StringsInDoubleQuotes is QUOTED_IDENTIFIER OFF: "text" is a string and no name.
	StringsInDoubleQuotes bool
}

type parser struct {
	text     string
	tokens   []token.Token
	at       int // number of the current token
	depth    int
	links    int  // operators of the statement that stand in a row
	strings  bool // "text" is a string
	whiles   int  // WHILE around the current statement
	isModule bool // the statement belongs to a module's body
	labels   map[string]bool
	jumps    []int // tokens with the labels of GOTO
}

// Parse makes the tree of one batch. The error is nil or an *Error.
func Parse(text string, options Options) (batch *ast.Batch, err error) {
	tokens, err := token.Split(text)
	if err != nil {
		if broken, is := errors.AsType[*token.Error](err); is {
			return nil, &Error{
				Number: broken.Number, Severity: 15, State: 1, Line: broken.Line, Column: broken.Column, Offset: broken.Offset,
				Message: broken.Message,
			}
		}
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, strings: options.StringsInDoubleQuotes}
	defer func() {
		if caught := recover(); caught != nil {
			refusal, is := caught.(*Error)
			if !is {
				panic(caught)
			}
			batch, err = nil, refusal
		}
	}()
	start := p.at
	batch = &ast.Batch{Text: text, Statements: p.statements(endOfBatch)}
	if !p.atEnd() {
		p.fail("a statement")
	}
	batch.Place = p.since(start)
	p.checkJumps()
	return batch, nil
}

func endOfBatch(*parser) bool { return false }

// current is the token that no rule has taken yet.
func (p *parser) current() *token.Token { return &p.tokens[p.at] }

// ahead is a token behind the current one.
func (p *parser) ahead(count int) *token.Token {
	return &p.tokens[max(0, min(p.at+count, len(p.tokens)-1))]
}

func (p *parser) atEnd() bool { return p.current().Kind == token.EOF }

// take moves behind the current token and returns it.
func (p *parser) take() *token.Token {
	t := p.current()
	if t.Kind == token.EOF {
		p.fail("more text")
	}
	p.at++
	return t
}

// since gives the place of everything from a token to the one taken last.
func (p *parser) since(start int) ast.Place {
	first := &p.tokens[start]
	place := ast.Place{Offset: first.Offset, End: first.End, Line: first.Line, Column: first.Column}
	if p.at > start {
		place.End = p.tokens[p.at-1].End
	} else {
		place.End = place.Offset
	}
	return place
}

// link counts an operator whose left side is all that stands before it.
func (p *parser) link() {
	p.links++
	if p.links > longest {
		p.refuse(p.at, 191, 15, tooDeep)
	}
}

const tooDeep = "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries."

// deeper counts a rule that contains itself; the caller defers what it returns.
func (p *parser) deeper() func() {
	p.depth++
	if p.depth > deepest {
		p.refuse(p.at, 191, 15, tooDeep)
	}
	return func() { p.depth-- }
}

// is says that these keywords or operators come next.
func (p *parser) is(words ...string) bool {
	for i, word := range words {
		if !p.ahead(i).Is(word) {
			return false
		}
	}
	return true
}

// isOne says that one of these keywords or operators comes next.
func (p *parser) isOne(words ...string) bool {
	for _, word := range words {
		if p.current().Is(word) {
			return true
		}
	}
	return false
}

// accept takes these keywords or operators if they come next, all or none.
func (p *parser) accept(words ...string) bool {
	if !p.is(words...) {
		return false
	}
	p.at += len(words)
	return true
}

// acceptOne takes one of these keywords if it comes next, and returns it.
func (p *parser) acceptOne(words ...string) string {
	for _, word := range words {
		if p.current().Is(word) {
			p.at++
			return word
		}
	}
	return ""
}

// expect takes these keywords or operators, or fails.
func (p *parser) expect(words ...string) {
	for _, word := range words {
		if !p.current().Is(word) {
			p.fail(word)
		}
		p.at++
	}
}

// expectOne takes one of these keywords, or fails.
func (p *parser) expectOne(words ...string) string {
	word := p.acceptOne(words...)
	if word == "" {
		p.fail(words...)
	}
	return word
}

// acceptPhrase takes the first of these phrases, each words with blanks between, that comes next.
func (p *parser) acceptPhrase(phrases ...string) string {
	for _, phrase := range phrases {
		if p.accept(strings.Fields(phrase)...) {
			return phrase
		}
	}
	return ""
}

// expectPhrase takes one of these phrases, or fails.
func (p *parser) expectPhrase(phrases ...string) string {
	phrase := p.acceptPhrase(phrases...)
	if phrase == "" {
		p.fail(phrases...)
	}
	return phrase
}

// onOff takes ON or OFF.
func (p *parser) onOff() bool { return p.expectOne("ON", "OFF") == "ON" }

// list calls read until no comma follows.
func (p *parser) list(read func()) {
	read()
	for p.accept(",") {
		read()
	}
}

// inParens calls read between parentheses.
func (p *parser) inParens(read func()) {
	p.expect("(")
	read()
	p.expect(")")
}
