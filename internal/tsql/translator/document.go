package translator

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A documentShape says how FOR XML or FOR JSON writes the rows of a query.
type documentShape struct {
	isJSON     bool
	mode       string // RAW, AUTO or PATH
	element    string // of a row
	root       string
	hasRoot    bool
	isElements bool
	showsNull  bool // ELEMENTS XSINIL, INCLUDE_NULL_VALUES
	isTyped    bool // TYPE
	isBare     bool // WITHOUT_ARRAY_WRAPPER
	namespaces []namespace
	columns    []documentColumn
}

type namespace struct{ prefix, uri string }

// A documentColumn is a column of the query as its document names it.
type documentColumn struct {
	name   string
	source string // the table that it comes from, for AUTO
	isJSON bool   // it is the result of FOR JSON itself
}

// documentShape reads the clause FOR of a query.
func (b *builder) documentShape(node *ast.For, body *ast.Specification, columns []sourceColumn) (*documentShape, *fault.Error) {
	s := &documentShape{isJSON: node.Kind == "JSON", mode: node.Mode, element: "row"}
	if node.Mode == "EXPLICIT" {
		return nil, expression.Unsupported("FOR XML EXPLICIT")
	}
	if node.ElementName != nil {
		name, err := literalText(node.ElementName)
		if err != nil {
			return nil, err
		}
		s.element = name
	}
	for _, o := range node.Options {
		switch words := strings.Fields(o.Name); words[0] {
		case "TYPE":
			s.isTyped = true
		case "ROOT":
			s.root, s.hasRoot = "root", true
			if o.Value != nil {
				name, err := literalText(o.Value)
				if err != nil {
					return nil, err
				}
				s.root = xmlName(name)
			}
		case "ELEMENTS":
			s.isElements = true
			s.showsNull = strings.HasSuffix(o.Name, "XSINIL")
		case "INCLUDE_NULL_VALUES":
			s.showsNull = true
		case "WITHOUT_ARRAY_WRAPPER":
			s.isBare = true
		case "BINARY":
		default:
			return nil, expression.Unsupported("FOR " + node.Kind + " " + o.Name)
		}
	}
	for _, n := range b.namespaces {
		uri, err := literalText(n.URI)
		if err != nil {
			return nil, err
		}
		s.namespaces = append(s.namespaces, namespace{n.Prefix, uri})
	}
	for _, c := range columns {
		s.columns = append(s.columns, documentColumn{name: c.name})
	}
	b.nameSources(s, body)
	return s, nil
}

func literalText(node ast.Expression) (string, *fault.Error) {
	literal, is := node.(*ast.Literal)
	if !is {
		return "", expression.Unsupported("a name that is no constant")
	}
	return literal.Text, nil
}

// nameSources notes which table each column comes from, as AUTO nests them, and which are JSON already.
func (b *builder) nameSources(s *documentShape, body *ast.Specification) {
	if body == nil {
		return
	}
	at := 0
	for _, node := range body.Items {
		result, is := node.(*ast.ResultColumn)
		if !is || at >= len(s.columns) {
			return
		}
		if _, isStar := result.Value.(*ast.Star); isStar {
			for ; at < len(s.columns); at++ {
				s.columns[at].source = firstSource(body)
			}
			return
		}
		if c, isColumn := result.Value.(*ast.ColumnReference); isColumn && len(c.Name.Parts) > 1 {
			s.columns[at].source = c.Name.Schema()
		} else if isColumn || at == 0 {
			s.columns[at].source = firstSource(body)
		} else {
			s.columns[at].source = s.columns[at-1].source
		}
		if q, isQuery := result.Value.(*ast.Subquery); isQuery && q.Query.For != nil && q.Query.For.Kind == "JSON" {
			s.columns[at].isJSON = true
		}
		if call, isCall := result.Value.(*ast.Call); isCall && strings.EqualFold(call.Name.Object(), "JSON_QUERY") {
			s.columns[at].isJSON = true
		}
		at++
	}
}

// firstSource gives the alias of the first table of FROM.
func firstSource(body *ast.Specification) string {
	if len(body.From) == 0 {
		return "row"
	}
	source := body.From[0]
	for {
		switch node := source.(type) {
		case *ast.Join:
			source = node.Left
			continue
		case *ast.SourceGroup:
			source = node.Inner
			continue
		case *ast.TableName:
			if node.Alias.Name != "" {
				return node.Alias.Name
			}
			return node.Name.Object()
		case *ast.TableVariable:
			if node.Alias.Name != "" {
				return node.Alias.Name
			}
			return node.Name
		case *ast.DerivedTable:
			return node.Alias.Name
		}
		return "row"
	}
}

// typeOf gives the type of the document.
func (s *documentShape) typeOf() value.Type {
	if s.isTyped {
		return value.Of(value.XML)
	}
	return value.Sized(value.NVarChar, value.Max)
}

// The names of the one column that FOR XML and FOR JSON give.
const (
	xmlColumn  = "XML_F52E2B61-18A1-11d1-B105-00805F49916B"
	jsonColumn = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B"
)

// document gives the rows of a SELECT as one text.
func (s *selectStatement) document(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	rows, err := s.gather(ctx, f)
	if err != nil {
		return 0, false, err
	}
	column := session.Column{Name: xmlColumn, Type: s.shape.typeOf()}
	switch {
	case s.shape.isJSON:
		column.Name = jsonColumn
	case s.shape.isTyped:
		column.Name = ""
	}
	if err := sink.Columns([]session.Column{column}); err != nil {
		return 0, false, lost(err)
	}
	text, hasText := s.shape.write(f.Context.Settings, rows)
	if !hasText && !s.shape.isTyped {
		return 0, true, nil
	}
	v := value.Null(column.Type)
	if hasText {
		v = value.TextOf(column.Type, text)
	}
	return 1, true, lost(sink.Row([]value.Value{v}))
}

// write gives the document of rows; false where there is none.
func (s *documentShape) write(settings *value.Settings, rows [][]value.Value) (string, bool) {
	if s.isJSON {
		return s.writeJSON(settings, rows)
	}
	return s.writeXML(settings, rows)
}

// documentOf compiles a query with FOR in the place of a value: it runs when the value is asked for.
func (t *Translator) documentOf(ctx context.Context, scope expression.Scope, q *ast.Query) (*expression.Expression, *fault.Error) {
	r, err := t.reading(ctx, scope, nil, q)
	if err != nil {
		return nil, err
	}
	return &expression.Expression{Type: r.shape.typeOf(), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		ctx, _ := f.Outside.(context.Context)
		rows, err := r.gather(ctx, f)
		if err != nil {
			return value.Value{}, err
		}
		return r.shape.value(f, rows), nil
	}}, nil
}

func (s *documentShape) value(f *expression.Frame, rows [][]value.Value) value.Value {
	text, hasText := s.write(f.Context.Settings, rows)
	if !hasText {
		return value.Null(s.typeOf())
	}
	return value.TextOf(s.typeOf(), text)
}

// forQuery makes a parameter of a query with FOR that needs no row of the queries around it.
func (b *builder) forQuery(q *ast.Query) (sqlExpression, *fault.Error) {
	if b.isDefinition {
		return sqlExpression{}, expression.Unsupported("FOR " + q.For.Kind + " in a definition")
	}
	e, err := b.translator.documentOf(b.ctx, b.scope, q)
	if err != nil {
		return sqlExpression{}, expression.Unsupported("FOR " + q.For.Kind + " of rows in the database")
	}
	return b.parameter(e, ""), nil
}

// document compiles a query with FOR inside a list of results: PostgreSQL gives its rows as JSON, Go writes the document.
func (s goScope) document(q *ast.Query) (*expression.Expression, *fault.Error) {
	r, err := s.readingOf(q)
	if err != nil {
		return nil, err
	}
	name := s.alias("d")
	var columns, cells []string
	for i, t := range r.leaves {
		column := "c" + itoa(i+1)
		columns = append(columns, column)
		cell := name + "." + column
		if databaseType(t) == "bpchar" {
			cell = plain(cell)
		} else {
			cell += "::text"
		}
		cells = append(cells, cell)
	}
	sql := "(select json_agg(json_build_array(" + strings.Join(cells, ", ") + "))::text from (" + r.sql + ") as " + name + " (" +
		strings.Join(columns, ", ") + "))"
	leaf := s.leaf(sqlExpression{sql: sql, typ: value.Sized(value.NVarChar, value.Max)})
	return &expression.Expression{Type: r.shape.typeOf(), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		v, err := leaf.Evaluate(f)
		if err != nil {
			return v, err
		}
		rows, err := r.fromJSON(f, v)
		if err != nil {
			return v, err
		}
		return r.shape.value(f, rows), nil
	}}, nil
}

// fromJSON reads the rows of a query inside another one.
func (r *reading) fromJSON(f *expression.Frame, v value.Value) ([][]value.Value, *fault.Error) {
	if v.IsNull() {
		return nil, nil
	}
	var read [][]*string
	if err := json.Unmarshal([]byte(v.Raw()), &read); err != nil {
		return nil, &fault.Error{Number: 50000, Severity: 16, State: 1, Message: err.Error()}
	}
	var rows [][]value.Value
	for _, cells := range read {
		bytes := make([][]byte, len(cells))
		for i, cell := range cells {
			if cell != nil {
				bytes[i] = []byte(*cell)
			}
		}
		row, err := decodeRow(r.leaves, bytes)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return r.resultsOf(f, rows)
}
