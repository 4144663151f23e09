package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// MERGE becomes two statements of one transaction, because PostgreSQL 14 has none. The first locks the rows of the target that the source
// meets. The second sees them as they are then: it decides for each pair of rows which clause it takes, and each clause is a part of it
// that changes the rows which took it. A row that another transaction changed in between is missed, and both run again. HOLDLOCK takes a
// lock of the table first, so that no other session inserts what this one does not find.

// mergedMark begins the text whose conversion fails where a row would be changed twice. No text of a user begins like it.
const mergedMark = "\x02parley merged twice"

// The names of the parts of the statement. The source is called by the same name wherever its columns are read.
const (
	mergeSource  = "merge_source"
	mergeChosen  = "merge_chosen"
	mergeChanged = "changed"
	mergeReading = "merge_s"
)

// A merge is MERGE under translation.
type merge struct {
	*targeting
	node   *ast.Merge
	change *change
	using  string       // the query of the source, with a number for each row
	copies []*source    // the sources as the other parts read them
	copied []mergedCell // their columns
	on     string
	parts  []string // one for each clause
	rows   []string // what the parts give, as rows of one form
	acts   map[string]bool
}

// A mergedCell is a column of the source.
type mergedCell struct{ name, sql string }

func (t *Translator) merge(ctx context.Context, node *ast.Merge, s expression.Scope) (interpreter.Statement, *fault.Error) {
	if node.Target.Rowset != nil {
		return nil, expression.Unsupported("MERGE of this form")
	}
	if err := mergeClauses(node.Whens); err != nil {
		return nil, err
	}
	b := t.builder(ctx, s)
	b.isCut = t.isCutting()
	prefix, done, err := b.with(node.With)
	defer done()
	if err != nil {
		return nil, err
	}
	m := &merge{targeting: &targeting{builder: b, prefix: prefix}, node: node, acts: map[string]bool{}}
	if m.table, m.into, err = b.target(&node.Target, nil); err != nil {
		return nil, err
	}
	if m.table.kind != 'r' && m.table.kind != 'p' {
		return nil, expression.Unsupported("MERGE into a view")
	}
	for _, w := range node.Whens {
		instead, err := t.insteadOf(m.table, w.Action)
		if err != nil {
			return nil, err
		}
		if instead != nil {
			return nil, expression.Unsupported("MERGE with an INSTEAD OF trigger").At(node.Line, "")
		}
	}
	b.names = &names{outer: b.names}
	defer func() { b.names = b.names.outer }()
	m.change = &change{
		builder: b, verb: "MERGE", table: m.table, written: node.Target.Name.String(), identity: -1, found: mergeChosen,
	}
	return m.change, m.write()
}

// mergeClauses checks which clauses stand where. Errors 5324, 10710 and 10714.
func mergeClauses(whens []*ast.MergeWhen) *fault.Error {
	ended := map[string]bool{}
	taken := map[string]bool{}
	for _, w := range whens {
		clause := "WHEN " + w.Kind
		if (w.Action == "INSERT") != (w.Kind == "NOT MATCHED BY TARGET") {
			return fault.New(10710, w.Action, clause).At(w.Line, "")
		}
		if ended[clause] {
			return fault.New(5324, clause, clause).At(w.Line, "")
		}
		if taken[clause+w.Action] {
			return fault.New(10714, w.Action, clause).At(w.Line, "")
		}
		ended[clause], taken[clause+w.Action] = w.Condition == nil, true
	}
	return nil
}

func (m *merge) write() *fault.Error {
	alias := m.node.Alias
	if alias == "" {
		if alias = m.node.Target.Name.Object(); m.node.Target.Variable != "" {
			alias = m.node.Target.Variable
		}
	}
	if err := m.readSource(); err != nil {
		return err
	}
	m.source = sourceOf(m.table, alias, quote(m.alias("t")))
	m.see(true, true)
	on, err := m.condition(m.node.On)
	if err != nil {
		return err
	}
	m.on = on
	chosen, err := m.choices()
	if err != nil {
		return err
	}
	for i, w := range m.node.Whens {
		if err := m.part(itoa(i+1), w); err != nil {
			return err.At(w.Line, "")
		}
	}
	if err := m.finish(); err != nil {
		return err
	}
	with := "with "
	if m.prefix != "" {
		with = strings.TrimSuffix(m.prefix, " ") + ", "
	}
	with += mergeSource + " as materialized (" + m.using + ")"
	m.change.before = m.locks(with)
	m.compose(with + ", " + mergeChosen + " as materialized (" + chosen + "), " + strings.Join(m.parts, ", "))
	return nil
}

// readSource translates the source: a query with a number for each row and a column for each column of its tables.
func (m *merge) readSource() *fault.Error {
	from, err := m.builder.source(m.node.Using)
	if err != nil {
		return err
	}
	cells := []string{"row_number() over () as rn"}
	for n, s := range m.names.sources {
		copied := &source{alias: s.alias, table: s.table, reading: mergeReading}
		for i, c := range s.columns {
			name := "s" + itoa(n+1) + "_" + itoa(i+1)
			cells = append(cells, c.sql+" as "+name)
			m.copied = append(m.copied, mergedCell{name, mergeReading + "." + name})
			copied.columns = append(copied.columns, sourceColumn{name: c.name, typ: c.typ, sql: mergeReading + "." + name})
		}
		m.copies = append(m.copies, copied)
	}
	m.using = "select " + strings.Join(cells, ", ") + " from " + from
	return nil
}

// see puts the target and the source in sight.
func (m *merge) see(target, using bool) {
	m.names.sources = nil
	if target {
		m.names.sources = append(m.names.sources, m.source)
	}
	if using {
		m.names.sources = append(m.names.sources, m.copies...)
	}
}

// has reports whether a clause of this kind is there.
func (m *merge) has(kind string) bool {
	for _, w := range m.node.Whens {
		if w.Kind == kind {
			return true
		}
	}
	return false
}

// locks gives the statements that run before: the lock of HOLDLOCK, and the locks of the rows that may be changed.
func (m *merge) locks(with string) []string {
	before := []string{}
	for _, h := range m.node.Target.Hints {
		if h.Name == "HOLDLOCK" || h.Name == "SERIALIZABLE" {
			before = append(before, "lock table "+m.into+" in share row exclusive mode")
			break
		}
	}
	rows := m.into + " as " + m.source.reading
	switch {
	case m.has("NOT MATCHED BY SOURCE"):
		return append(before, "select count(*) from (select 1 from "+rows+" for update) as l")
	case m.has("MATCHED"):
		return append(before, with+" select count(*) from (select 1 from "+mergeSource+" as "+mergeReading+" join "+rows+" on "+m.on+
			" for update of "+m.source.reading+") as l")
	}
	return before
}

// choices writes the query that gives each pair of rows the number of its clause. TOP counts the pairs that take one.
func (m *merge) choices() (string, *fault.Error) {
	matched, err := m.choice("MATCHED", true, true)
	if err != nil {
		return "", err
	}
	unmatched, err := m.choice("NOT MATCHED BY TARGET", false, true)
	if err != nil {
		return "", err
	}
	keys, _ := m.rowKey(m.source.reading)
	for i, c := range m.table.columns {
		keys = append(keys, m.source.reading+"."+quote(c.name)+" as o"+itoa(i+1))
	}
	cells, nulls := []string{mergeReading + ".rn"}, []string{"null"}
	for _, c := range m.copied {
		cells, nulls = append(cells, c.sql), append(nulls, "null")
	}
	rows := "select " + strings.Join(append(cells, keys...), ", ") + ", case when " + m.source.reading + ".ctid is null then " + unmatched +
		" else " + matched + " end as act from " + mergeSource + " as " + mergeReading + " left join " + m.into + " as " + m.source.reading +
		" on " + m.on
	if m.has("NOT MATCHED BY SOURCE") {
		orphaned, err := m.choice("NOT MATCHED BY SOURCE", true, false)
		if err != nil {
			return "", err
		}
		rows += " union all select " + strings.Join(append(nulls, keys...), ", ") + ", " + orphaned + " from " + m.into + " as " +
			m.source.reading + " where not exists (select from " + mergeSource + " as " + mergeReading + " where " + m.on + ")"
	}
	m.names.sources = nil
	chosen := "select * from (" + rows + ") as c where c.act is not null"
	limit, err := m.limitOfChange(m.node.Top, chosen)
	return chosen + limit, err
}

// choice writes the number of the first clause of a kind whose condition holds.
func (m *merge) choice(kind string, target, using bool) (string, *fault.Error) {
	m.see(target, using)
	var cases strings.Builder
	for i, w := range m.node.Whens {
		if w.Kind != kind {
			continue
		}
		condition := "true"
		if w.Condition != nil {
			sql, err := m.condition(w.Condition)
			if err != nil {
				return "", err.At(w.Line, "")
			}
			condition = sql
		}
		cases.WriteString(" when " + condition + " then " + itoa(i+1))
	}
	if cases.Len() == 0 {
		return "null::integer", nil
	}
	return "case" + cases.String() + " end", nil
}

// isRow says that a row of the target is the one that a clause chose.
func (m *merge) isRow() string {
	if len(m.table.key) == 0 {
		return m.source.reading + ".ctid = " + mergeReading + ".k1"
	}
	var parts []string
	for i, name := range m.table.key {
		parts = append(parts, m.source.reading+"."+quote(name)+" = "+mergeReading+".k"+itoa(i+1))
	}
	return strings.Join(parts, " and ")
}

// finish translates OUTPUT, and what triggers need.
func (m *merge) finish() *fault.Error {
	inserted := &source{alias: "inserted", table: m.table, isHidden: true}
	deleted := &source{alias: "deleted", table: m.table, isHidden: true}
	for i, c := range m.table.columns {
		place := itoa(i + 1)
		inserted.columns = append(inserted.columns, sourceColumn{name: c.name, typ: c.typ, sql: mergeChanged + ".n" + place})
		deleted.columns = append(deleted.columns, sourceColumn{name: c.name, typ: c.typ, sql: mergeChanged + ".o" + place})
	}
	sources := []*source{inserted, deleted}
	for _, s := range m.copies {
		again := &source{alias: s.alias, table: s.table}
		for _, c := range s.columns {
			c.sql = mergeChanged + strings.TrimPrefix(c.sql, mergeReading)
			again.columns = append(again.columns, c)
		}
		sources = append(sources, again)
	}
	m.action = &sqlExpression{sql: mergeChanged + ".action::bpchar collate " + collation, typ: value.Sized(value.NVarChar, 10)}
	defer func() { m.action = nil }()
	for _, w := range m.node.Whens {
		if err := m.change.refusesOutput(m.node.Output, w.Action); err != nil {
			return err
		}
	}
	if err := m.change.returns(m.node.Output, sources); err != nil {
		return err
	}
	if id := m.table.identity(); id != nil && m.acts["INSERT"] {
		at := "n" + itoa(m.columnAt(id)+1)
		m.change.identity = m.change.returning(sqlExpression{
			sql: "case when " + mergeChanged + ".action = 'INSERT' then " + mergeChanged + "." + at + " end", typ: id.typ,
		})
	}
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		if m.acts[event] {
			m.fires(event, inserted, deleted)
		}
	}
	return nil
}

func (m *merge) columnAt(c *column) int {
	for i, other := range m.table.columns {
		if other == c {
			return i
		}
	}
	return -1
}

// compose puts the statement together. It fails before any row is given where a row of the target would be changed twice, and where one
// was missed.
func (m *merge) compose(with string) {
	c := m.change
	if len(c.returned) == 0 {
		c.returning(sqlExpression{sql: "0", typ: value.Of(value.Int)})
	}
	given := make([]string, len(c.returned))
	for i, e := range c.returned {
		given[i] = e.sql
	}
	rows := " select " + strings.Join(given, ", ") + " from " + mergeChanged
	var keys []string
	for i := range max(1, len(m.table.key)) {
		keys = append(keys, "k"+itoa(i+1))
	}
	fails := " where case when exists (select from " + mergeChosen + " where k1 is not null group by " + strings.Join(keys, ", ") +
		" having count(*) > 1) then ('" + mergedMark + "' || (select count(*) from " + mergeChosen + "))::integer = 0" +
		" when (select count(*) from " + mergeChosen + ") <> (select count(*) from " + mergeChanged + ") then ('" + missedMark +
		"' || (select count(*) from " + mergeChosen + "))::integer = 0 else false end"
	with += ", " + mergeChanged + " as (" + strings.Join(m.rows, " union all ") + ")"
	for i, sent := range c.sent {
		with += ", sent_" + itoa(i+1) + " as (" + sent.sql(given) + ")"
	}
	c.sql = with + rows + fails + " union all" + rows
}
