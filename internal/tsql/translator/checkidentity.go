package translator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// ownedSequence is the sequence of the column $2 of the table $1, and whether the role may alter the table.
const ownedSequence = ` from pg_catalog.pg_depend as p
join pg_catalog.pg_sequence as s on s.seqrelid = p.objid
join pg_catalog.pg_class as c on c.oid = p.refobjid
where p.refobjid = $1::text::regclass and p.refobjsubid = $2::text::smallint and p.deptype = 'i'`

// lastOfSequence is the last number of the sequence s; NULL where it gave none, or where the role may not read it.
const lastOfSequence = "(case when pg_catalog.has_sequence_privilege(s.seqrelid, 'select, usage')" +
	" then pg_catalog.pg_sequence_last_value(s.seqrelid) end)"

// An identityCheck is DBCC CHECKIDENT.
type identityCheck struct {
	translator *Translator
	node       *ast.CheckIdentity
	table      *expression.Expression
	value      *expression.Expression // nil without a new value
}

func (t *Translator) checkIdentity(node *ast.CheckIdentity, s expression.Scope) (interpreter.Statement, *fault.Error) {
	c := &identityCheck{translator: t, node: node}
	var table ast.Expression = &ast.Variable{Name: node.Table.Variable}
	if node.Table.Variable == "" {
		table = &ast.Literal{Kind: ast.NationalString, Text: writtenName(node.Table)}
	}
	var err *fault.Error
	if c.table, err = expression.CompileAs(table, value.Sized(value.NVarChar, value.MaxUnicode), s); err != nil {
		return nil, err
	}
	if node.Value != nil {
		c.value, err = expression.CompileAs(node.Value, value.Of(value.BigInt), s)
	}
	return c, err
}

// writtenName gives the text that names a table: a string as it is, a name that stands bare so that it is read as one.
func writtenName(n ast.Named) string {
	if n.IsString || len(n.Name.Parts) == 1 && !strings.ContainsAny(n.Name.Object(), ".[]\" ") {
		return n.Name.String()
	}
	parts := make([]string, len(n.Name.Parts))
	for i, part := range n.Name.Parts {
		parts[i] = ast.Bracketed(part)
	}
	return strings.Join(parts, ".")
}

// IsWrite says that a doomed transaction refuses it.
func (c *identityCheck) IsWrite() bool { return c.node.Value != nil }

// IsSilent says that message 3621 follows none of its errors.
func (*identityCheck) IsSilent() bool { return true }

// An identityState is how far the numbers of a table have come. Texts are empty where there is no number yet.
type identityState struct {
	sequence, current, furthest string
	role                        string
	least, most, step           int64
	mayAlter                    bool
}

// Run tells how far the numbers have come, and sets them.
func (c *identityCheck) Run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	written, err := c.table.Evaluate(f)
	if err != nil {
		return 0, false, err
	}
	table, column, err := c.columnOf(ctx, written.Raw())
	if err != nil {
		return 0, false, err
	}
	state, err := c.translator.identityState(ctx, table, column)
	if err != nil {
		return 0, false, err
	}
	if !state.mayAlter {
		return 0, false, fault.New(2557, state.role, "CHECKIDENT", written.Raw())
	}
	said := fault.New(7998, orNull(state.current), orNull(state.furthest))
	if c.value != nil {
		said.Message = fmt.Sprintf("Checking identity information: current identity value '%s'.", orNull(state.current))
		if err := c.set(ctx, f, table, column, state); err != nil {
			return 0, false, err
		}
	} else if err := c.correct(ctx, state); err != nil {
		return 0, false, err
	}
	if c.node.IsQuiet {
		return 0, false, nil
	}
	for _, message := range []*fault.Error{said, fault.New(2528)} {
		if err := sink.Message(message); err != nil {
			return 0, false, lost(err)
		}
	}
	return 0, false, nil
}

func orNull(number string) string {
	if number == "" {
		return "NULL"
	}
	return number
}

// columnOf finds the column with IDENTITY of a table that a text names.
func (c *identityCheck) columnOf(ctx context.Context, written string) (*relation, *column, *fault.Error) {
	parts := nameParts(written)
	if parts == nil {
		return nil, nil, fault.New(2501, written)
	}
	r, err := c.translator.relationOf(ctx, ast.Name{Parts: parts})
	switch {
	case err != nil && err.Number == 208 || err == nil && r.kind != 'r' && r.kind != 'p':
		return nil, nil, fault.New(2501, written)
	case err != nil:
		return nil, nil, err
	case r.identity() == nil:
		return nil, nil, fault.New(7997, written)
	}
	return r, r.identity(), nil
}

// identityState asks the database how far the numbers of a column have come.
func (t *Translator) identityState(ctx context.Context, table *relation, column *column) (*identityState, *fault.Error) {
	s := &identityState{}
	where := []string{table.sql, strconv.Itoa(column.number)}
	err := t.rows(ctx, "select s.seqrelid::regclass::text, coalesce("+lastOfSequence+"::text, ''), "+
		"s.seqmin::text, s.seqmax::text, s.seqincrement::text, pg_catalog.pg_has_role(c.relowner, 'usage')::text, current_user"+ownedSequence,
		where, func(row []string) {
			s.sequence, s.current, s.mayAlter, s.role = row[0], row[1], row[5] == "true", row[6]
			for i, number := range []*int64{&s.least, &s.most, &s.step} {
				*number, _ = strconv.ParseInt(row[i+2], 10, 64)
			}
		})
	if err != nil || !s.mayAlter {
		return s, err
	}
	furthest := "max"
	if s.step < 0 {
		furthest = "min"
	}
	err = t.rows(ctx, "select coalesce("+furthest+"("+quote(column.name)+")::text, '') from "+table.sql, nil,
		func(row []string) { s.furthest = row[0] })
	return s, err
}

// set makes a value the current one. A table that had no row since it was made or truncated gives it to its first row.
func (c *identityCheck) set(
	ctx context.Context, f *expression.Frame, table *relation, column *column, s *identityState,
) *fault.Error {
	v, err := c.value.Evaluate(f)
	if err != nil {
		return err
	}
	if v.IsNull() {
		return nil
	}
	if n := v.Int64(); n < s.least || n > s.most {
		limit := fmt.Sprintf("alter table %s alter column %s set minvalue %d set maxvalue %d",
			table.sql, quote(column.name), min(n, s.least), max(n, s.most))
		if err := c.translator.run(ctx, "ALTER TABLE", limit); err != nil {
			return err
		}
	}
	return c.translator.rows(ctx, "select pg_catalog.setval($1::text::regclass, $2::text::bigint, $3::text::boolean)",
		[]string{s.sequence, strconv.FormatInt(v.Int64(), 10), strconv.FormatBool(s.current != "")}, func([]string) {})
}

// correct goes on behind the furthest number in the table, where the current one has not come so far.
func (c *identityCheck) correct(ctx context.Context, s *identityState) *fault.Error {
	if c.node.NoReseed || s.furthest == "" {
		return nil
	}
	furthest, _ := strconv.ParseInt(s.furthest, 10, 64)
	current, _ := strconv.ParseInt(s.current, 10, 64)
	isPast := s.current != "" && (s.step > 0) == (current >= furthest)
	if isPast || furthest < s.least || furthest > s.most {
		return nil
	}
	return c.translator.rows(ctx, "select pg_catalog.setval($1::text::regclass, $2::text::bigint)", []string{s.sequence, s.furthest},
		func([]string) {})
}

// A numbering has the numbers that a statement has put into a column with IDENTITY.
type numbering struct {
	least, most int64
	isThere     bool
}

func (n *numbering) note(v value.Value) {
	if v.IsNull() {
		return
	}
	number := v.Int64()
	if !n.isThere {
		*n = numbering{least: number, most: number, isThere: true}
	}
	n.least, n.most = min(n.least, number), max(n.most, number)
}

// advance goes on behind the numbers that IDENTITY_INSERT put into a table, where they are further than the current one.
func (t *Translator) advance(ctx context.Context, table *relation, n numbering) *fault.Error {
	if table == nil || !n.isThere || t.insertsID != table.sql {
		return nil
	}
	const furthest = "(case when s.seqincrement > 0 then $4::text else $3::text end)::bigint"
	return t.rows(ctx, "select pg_catalog.setval(s.seqrelid::regclass, "+furthest+")"+ownedSequence+
		" and "+furthest+" between s.seqmin and s.seqmax and pg_catalog.has_sequence_privilege(s.seqrelid, 'update')"+
		" and "+furthest+" * sign(s.seqincrement) > sign(s.seqincrement) * coalesce("+
		lastOfSequence+", s.seqstart::numeric - s.seqincrement)",
		[]string{table.sql, strconv.Itoa(table.identity().number), strconv.FormatInt(n.least, 10), strconv.FormatInt(n.most, 10)},
		func([]string) {})
}

// identities has the numbers that the rows of a change got by IDENTITY, and whether an aggregate left NULL out.
type identities struct {
	last       value.Value
	numbers    numbering
	hasDropped bool
}

// note keeps what a row says.
func (c *change) note(row []value.Value, given *identities) {
	if c.identity >= 0 && (c.before == nil || !row[c.identity].IsNull()) {
		given.last = row[c.identity]
		given.numbers.note(given.last)
	}
	given.hasDropped = given.hasDropped || c.watched > 0 && row[c.watched-1].Bool()
}
