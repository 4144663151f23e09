package parser

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// longestName is the number of characters that an identifier may have. The lexer checks all but those in double quotes,
// which may be strings.
const longestName = 128

// isName says that the current token can be a name.
func (p *parser) isName() bool { return p.namesObject(p.current()) }

func (p *parser) namesObject(t *token.Token) bool {
	if t.Kind != token.DoubleQuoted {
		return t.IsName()
	}
	if !p.strings && utf8.RuneCountInString(t.Text) > longestName {
		refuseToken(t, 103, 15, "The identifier that starts with '%.128s' is too long. Maximum length is %d.", t.Text, longestName)
	}
	return !p.strings && t.Text != ""
}

// isString says that the current token is a string.
func (p *parser) isString() bool {
	kind := p.current().Kind
	return kind == token.String || kind == token.NationalString || kind == token.DoubleQuoted && p.strings
}

// identifier takes a name of one part.
func (p *parser) identifier(meaning string) string {
	if !p.isName() {
		p.fail(meaning)
	}
	return p.take().Text
}

// word takes a word, reserved or not, and returns it in upper case.
func (p *parser) word(meaning string) string {
	if p.current().Kind != token.Word {
		p.fail(meaning)
	}
	return p.take().Upper
}

// variable takes a local variable and returns its name.
func (p *parser) variable() string {
	if p.current().Kind != token.Variable {
		p.fail("a variable")
	}
	return p.take().Text
}

func (p *parser) isVariable() bool { return p.current().Kind == token.Variable }

// name takes an identifier with its qualifiers.
func (p *parser) name(meaning string) ast.Name {
	start := p.at
	name := ast.Name{}
	for {
		for p.is(".") && len(name.Parts) < 3 {
			if len(name.Parts) == 0 && !p.namesObject(p.ahead(1)) && !p.ahead(1).Is(".") {
				p.fail(meaning)
			}
			p.at++
			name.Parts = append(name.Parts, "")
		}
		name.Parts = append(name.Parts, p.identifier(meaning))
		if !p.is(".") {
			break
		}
		if len(name.Parts) > 3 {
			p.refuse(p.at, 117, 15, "The object name '%s' contains more than the maximum number of prefixes. The maximum is 3.",
				name.String()+"."+p.ahead(1).Text)
		}
		p.at++
	}
	name.Place = p.since(start)
	return name
}

// names takes names with commas between.
func (p *parser) names(meaning string) (all []ast.Name) {
	p.list(func() { all = append(all, p.name(meaning)) })
	return all
}

// identifiers takes names of one part with commas between.
func (p *parser) identifiers(meaning string) (all []string) {
	p.list(func() { all = append(all, p.identifier(meaning)) })
	return all
}

// columnList takes names in parentheses, if they come next.
func (p *parser) columnList() (columns []string) {
	if p.is("(") {
		p.inParens(func() { columns = p.identifiers("a column") })
	}
	return columns
}

// named takes a name or a variable that holds one.
func (p *parser) named(meaning string) ast.Named {
	start := p.at
	if p.isVariable() {
		variable := p.variable()
		return ast.Named{Place: p.since(start), Variable: variable}
	}
	name := p.name(meaning)
	return ast.Named{Place: p.since(start), Name: name}
}

// namedOrString takes a name, a string or a variable.
func (p *parser) namedOrString(meaning string) ast.Named {
	if !p.isString() {
		return p.named(meaning)
	}
	start := p.at
	t := p.take()
	place := p.since(start)
	return ast.Named{
		Place: place, Name: ast.Name{Place: place, Parts: []string{t.Text}}, IsString: true, National: t.Kind == token.NationalString,
	}
}

// number takes a whole number.
func (p *parser) number() int {
	t := p.current()
	if t.Kind != token.Integer {
		p.fail("a number")
	}
	p.at++
	value, err := strconv.Atoi(t.Text)
	if err != nil {
		p.refuse(p.at-1, 1014, 15, "A number is too large.")
	}
	return value
}

// typesOfWords are types whose names have blanks; longer ones come first.
var typesOfWords = []string{
	"NATIONAL CHARACTER VARYING", "NATIONAL CHAR VARYING", "NATIONAL CHARACTER", "NATIONAL CHAR", "NATIONAL TEXT",
	"CHARACTER VARYING", "CHAR VARYING", "BINARY VARYING", "DOUBLE PRECISION",
}

// dataType takes a type with its arguments.
func (p *parser) dataType() ast.DataType {
	start := p.at
	kind := ast.DataType{}
	if words := p.acceptPhrase(typesOfWords...); words != "" {
		kind.Name = ast.Name{Parts: []string{strings.ToLower(words)}, Place: p.since(start)}
	} else {
		kind.Name = p.name("a type")
	}
	if p.is("(") {
		p.inParens(func() { p.typeArguments(&kind) })
	}
	kind.Place = p.since(start)
	return kind
}

func (p *parser) typeArguments(kind *ast.DataType) {
	if p.accept("MAX") {
		kind.Max = true
		return
	}
	if p.current().Kind == token.Integer {
		p.list(func() { kind.Arguments = append(kind.Arguments, p.number()) })
		return
	}
	if strings.EqualFold(kind.Name.Object(), "xml") {
		if p.isOne("CONTENT", "DOCUMENT") && !p.ahead(1).Is(")") && !p.ahead(1).Is(".") {
			kind.Facet = p.take().Upper
		}
		kind.Collection = p.name("a schema collection")
		return
	}
	p.fail("a number", "MAX")
}

// keyword takes a word as a value.
func (p *parser) keyword() *ast.Keyword {
	start := p.at
	word := p.word("a word")
	node := &ast.Keyword{Word: word}
	node.Place = p.since(start)
	return node
}
