package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// tableDefinition takes columns and constraints in parentheses.
func (p *parser) tableDefinition() *ast.TableDefinition {
	start := p.at
	node := &ast.TableDefinition{}
	p.expect("(")
	for {
		p.tableElement(node)
		if p.accept(")") {
			break
		}
		if !p.accept(",") && !p.opensConstraint() { // a constraint of the table may follow a column without a comma
			p.fail(",", ")")
		}
		if p.accept(")") { // and a comma may stand before the end
			break
		}
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) opensConstraint() bool {
	return p.isOne("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
}

func (p *parser) tableElement(node *ast.TableDefinition) {
	switch {
	case p.opensConstraint(), p.is("DEFAULT"), p.is("CONNECTION", "("):
		node.Constraints = append(node.Constraints, p.tableConstraint())
		node.Order = append(node.Order, 'k')
	case p.is("INDEX"):
		node.Indexes = append(node.Indexes, p.indexInside())
		node.Order = append(node.Order, 'i')
	case p.accept("PERIOD", "FOR", "SYSTEM_TIME"):
		node.Period = p.columnList()
		node.Order = append(node.Order, 'p')
	default:
		node.Columns = append(node.Columns, p.columnDefinition())
		node.Order = append(node.Order, 'c')
	}
}

func (p *parser) createTable(start int) ast.Statement {
	p.expect("TABLE")
	node := &ast.CreateTable{Name: p.name("a table")}
	switch {
	case p.accept("AS", "FILETABLE"):
		node.AsFile = true
	default:
		node.Definition = p.tableDefinition()
		if p.accept("AS", "NODE") {
			node.AsKind = "NODE"
		} else if p.accept("AS", "EDGE") {
			node.AsKind = "EDGE"
		}
	}
	node.Storage = p.storage()
	if p.is("WITH", "(") {
		p.at++
		node.Options = p.optionsInParens()
	}
	node.Storage = append(node.Storage, p.storage()...)
	node.Place = p.since(start)
	return node
}

// storage takes ON, TEXTIMAGE_ON and FILESTREAM_ON.
func (p *parser) storage() (all []*ast.Storage) {
	for p.isOne("ON", "TEXTIMAGE_ON", "FILESTREAM_ON") {
		start := p.at
		node := &ast.Storage{Kind: p.take().Upper}
		node.Name = p.filegroup()
		if p.accept("(") {
			node.Column = p.identifier("a column")
			p.expect(")")
		}
		node.Place = p.since(start)
		all = append(all, node)
	}
	return all
}

// columnDefinition takes a column with its type and clauses.
func (p *parser) columnDefinition() *ast.ColumnDefinition {
	start := p.at
	node := &ast.ColumnDefinition{Name: p.identifier("a column")}
	switch {
	case p.accept("AS"):
		node.Computed = p.expression()
	case p.isName() && !p.is("ROWGUIDCOL") || p.is("NATIONAL") || p.is("DOUBLE"):
		node.HasType = true
		node.Type = p.dataType()
	}
	for {
		clause := p.columnClause()
		if clause == nil {
			break
		}
		node.Clauses = append(node.Clauses, clause)
	}
	node.Place = p.since(start)
	return node
}

// plainClauses are words alone.
var plainClauses = []string{
	"NOT FOR REPLICATION", "NOT NULL", "NULL", "ROWGUIDCOL", "SPARSE", "FILESTREAM", "PERSISTED", "HIDDEN",
	"COLUMN_SET FOR ALL_SPARSE_COLUMNS",
}

// columnClause takes one clause behind a column's type, or returns nil.
func (p *parser) columnClause() *ast.ColumnClause {
	start := p.at
	clause := &ast.ColumnClause{Kind: p.acceptPhrase(plainClauses...)}
	switch {
	case clause.Kind != "":
	case p.accept("COLLATE"):
		clause.Kind = "COLLATE"
		clause.Name = p.collation()
	case p.accept("IDENTITY"):
		clause.Kind = "IDENTITY"
		if p.accept("(") {
			clause.Seed = p.constant()
			p.expect(",")
			clause.Increment = p.constant()
			p.expect(")")
		}
	case p.accept("GENERATED", "ALWAYS", "AS"):
		clause.Kind = "GENERATED"
		clause.Name = p.expectPhrase("ROW START", "ROW END", "SUSER_SID START", "SUSER_SID END",
			"SUSER_SNAME START", "SUSER_SNAME END", "TRANSACTION_ID START", "TRANSACTION_ID END", "SEQUENCE_NUMBER START",
			"SEQUENCE_NUMBER END")
	case p.is("MASKED", "WITH"), p.is("ENCRYPTED", "WITH"):
		clause.Kind = p.take().Upper
		p.expect("WITH")
		clause.Options = p.optionsInParens()
	case p.opensConstraint(), p.isOne("DEFAULT", "REFERENCES"):
		clause.Kind = "CONSTRAINT"
		clause.Constraint = p.columnConstraint()
	case p.is("INDEX"):
		clause.Kind = "INDEX"
		clause.Index = p.indexInside()
	default:
		return nil
	}
	clause.Place = p.since(start)
	return clause
}

// indexInside takes an index in the definition of a table.
func (p *parser) indexInside() *ast.CreateIndex {
	start := p.at
	p.expect("INDEX")
	node := &ast.CreateIndex{Name: p.identifier("an index"), Unique: p.accept("UNIQUE")}
	node.Cluster = p.acceptPhrase("CLUSTERED COLUMNSTORE", "NONCLUSTERED COLUMNSTORE", "NONCLUSTERED HASH", "CLUSTERED",
		"NONCLUSTERED", "HASH")
	if p.is("(") {
		node.Columns = p.keyColumns()
	}
	p.indexTail(node)
	node.Place = p.since(start)
	return node
}

// keyColumns takes columns with their directions in parentheses.
func (p *parser) keyColumns() (all []*ast.KeyColumn) {
	p.inParens(func() {
		p.list(func() {
			start := p.at
			node := &ast.KeyColumn{Name: p.identifier("a column"), Direction: p.acceptOne("ASC", "DESC")}
			node.Place = p.since(start)
			all = append(all, node)
		})
	})
	return all
}

// indexTail takes what may follow an index's columns.
func (p *parser) indexTail(node *ast.CreateIndex) {
	if p.accept("INCLUDE") {
		node.Include = p.columnList()
	}
	if p.accept("WHERE") {
		node.Where = p.condition()
	}
	switch {
	case p.is("WITH", "("):
		p.at++
		node.Parens = true
		node.Options = p.optionsInParens()
	case p.is("WITH") && p.isIndexOption(1):
		p.at++
		node.Options = p.optionList()
	}
	node.Storage = p.storage()
}

// isIndexOption says that the form of old versions follows: WITH FILLFACTOR = 80, without parentheses.
func (p *parser) isIndexOption(ahead int) bool {
	t := p.ahead(ahead)
	return t.Is("FILLFACTOR") || t.Is("PAD_INDEX") || t.Is("IGNORE_DUP_KEY") || t.Is("DROP_EXISTING") || t.Is("STATISTICS_NORECOMPUTE") ||
		t.Is("SORT_IN_TEMPDB")
}

func (p *parser) createIndex(start int) ast.Statement {
	node := &ast.CreateIndex{Unique: p.accept("UNIQUE")}
	node.Cluster = p.acceptPhrase("CLUSTERED COLUMNSTORE", "NONCLUSTERED COLUMNSTORE", "COLUMNSTORE", "CLUSTERED", "NONCLUSTERED")
	if node.Cluster == "" {
		node.Kind = p.acceptPhrase("PRIMARY XML", "XML", "SPATIAL", "SELECTIVE XML")
	}
	p.expect("INDEX")
	node.Name = p.identifier("an index")
	p.expect("ON")
	node.Table = p.name("a table")
	if p.is("(") {
		node.Columns = p.keyColumns()
	}
	if p.is("USING") {
		p.indexUsing(node)
	}
	if p.accept("ORDER") {
		p.fail("WITH")
	}
	p.indexTail(node)
	node.Place = p.since(start)
	return node
}

// indexUsing takes USING of XML and spatial indexes.
func (p *parser) indexUsing(node *ast.CreateIndex) {
	p.expect("USING")
	if p.accept("XML", "INDEX") {
		node.Using = []string{"XML", "INDEX", p.identifier("an index")}
		if p.accept("FOR") {
			node.Using = append(node.Using, "FOR", p.expectOne("VALUE", "PATH", "PROPERTY"))
		}
		return
	}
	node.Using = []string{p.word("a tessellation")}
}
