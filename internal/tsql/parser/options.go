package parser

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// units may stand behind the value of an option outside of parentheses.
var units = []string{
	"KB", "MB", "GB", "TB", "MINUTES", "MINUTE", "HOURS", "HOUR", "DAYS", "DAY", "SECONDS", "MUST_CHANGE", "HASHED", "UNLOCK",
}

// optionsInParens takes (NAME = value, ...). Some statements leave the commas out.
func (p *parser) optionsInParens() (all []*ast.Option) {
	p.expect("(")
	for !p.accept(")") {
		if p.atEnd() {
			p.fail(")")
		}
		all = append(all, p.optionInside())
		if !p.accept(",") && !p.is(")") && p.current().Kind != token.Word {
			p.fail(",", ")")
		}
	}
	return all
}

// optionInside takes an option of a list in parentheses: all words up to the next comma belong to it.
func (p *parser) optionInside() *ast.Option {
	defer p.deeper()()
	start := p.at
	option := &ast.Option{}
	if p.current().Kind != token.Word || p.namesPart() {
		option.Value = p.optionValue(option)
		if p.accept("TO") {
			option.Unit = "TO " + p.raw()
		}
		option.Place = p.since(start)
		return option
	}
	var words []string
	for p.current().Kind == token.Word {
		words = append(words, p.take().Upper)
	}
	option.Name = strings.Join(words, " ")
	if p.accept("=") {
		option.Equals = true
		option.Value = p.optionValue(option)
	}
	p.unitInside(option)
	if p.is("(") && !option.Parens {
		option.Parens = true
		option.List = p.optionsInParens()
	}
	option.Place = p.since(start)
	return option
}

// namesPart says that the current word is a name of several parts.
func (p *parser) namesPart() bool { return p.ahead(1).Is(".") }

// unitInside takes the words behind a value in parentheses.
func (p *parser) unitInside(option *ast.Option) {
	var words []string
	for p.current().Kind == token.Word && !p.ahead(1).Is("=") || p.current().Kind == token.Bracketed || p.is("%") {
		word := p.raw()
		if p.ahead(-1).Kind == token.Word {
			word = p.ahead(-1).Upper
		}
		words = append(words, word)
	}
	option.Unit = strings.Join(words, " ")
}

// optionList takes options with commas between, outside of parentheses.
func (p *parser) optionList() (all []*ast.Option) {
	all = append(all, p.option())
	for p.accept(",") || p.is("OLD_PASSWORD") {
		all = append(all, p.option())
	}
	return all
}

// option takes one option outside of parentheses: words before a sign of equality are its name, else one word is.
func (p *parser) option() *ast.Option {
	start := p.at
	count := 0
	for count < 5 && p.ahead(count).Kind == token.Word {
		count++
	}
	if !p.ahead(count).Is("=") {
		count = 1
	}
	var words []string
	for range count {
		words = append(words, p.word("an option"))
	}
	return p.optionNamed(start, strings.Join(words, " "))
}

// optionNamed takes the value of an option, its unit, and its settings in parentheses.
func (p *parser) optionNamed(start int, name string) *ast.Option {
	option := &ast.Option{Name: name}
	if p.accept("=") {
		option.Equals = true
		option.Value = p.optionValue(option)
		p.unit(option)
	}
	if p.is("(") && !option.Parens {
		option.Parens = true
		option.List = p.optionsInParens()
	}
	option.Place = p.since(start)
	return option
}

func (p *parser) unit(option *ast.Option) {
	for p.current().Kind == token.Word && slices.Contains(units, p.current().Upper) || p.is("%") {
		option.Unit = strings.TrimSpace(option.Unit + " " + p.take().Upper)
	}
}

// optionValue takes the value of an option: a constant, a variable, a word or a name. Where it stands in parentheses it is
// the option's list.
func (p *parser) optionValue(option *ast.Option) ast.Expression {
	start := p.at
	t := p.current()
	switch {
	case t.Is("("):
		option.Parens = true
		option.List = p.optionsInParens()
		return nil
	case t.Kind == token.Decimal && p.ahead(1).Kind == token.Decimal:
		return p.address(start)
	case t.Kind == token.Word && t.Reserved && !t.Is("NULL"):
		return p.keyword()
	case p.isName():
		name := p.name("a value")
		node := &ast.ColumnReference{Name: name}
		node.Place = name.Place
		return node
	default:
		return p.constant()
	}
}

// address takes an address of IPv4, which the rules of constants cut into decimals.
func (p *parser) address(start int) ast.Expression {
	var text strings.Builder
	for p.current().Kind == token.Decimal {
		text.WriteString(p.take().Text)
	}
	node := &ast.Keyword{Word: text.String()}
	node.Place = p.since(start)
	return node
}

// phraseOption makes an option of words that are taken already, perhaps with a value.
func (p *parser) phraseOption(start int, name string, value ast.Expression) *ast.Option {
	option := &ast.Option{Name: name, Value: value}
	option.Place = p.since(start)
	return option
}
