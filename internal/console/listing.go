package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rowsMost is how many rows a list shows, and keysMost on how many an action works at once.
const (
	rowsMost = 100
	keysMost = 1000
)

// kind says how a column is shown.
type kind string

const (
	text    kind = "text"
	code    kind = "code"  // names and identities, in letters of one width
	number  kind = "count" // to the right, with separators
	size    kind = "size"
	span    kind = "span" // seconds
	moment  kind = "moment"
	state   kind = "state"
	reading kind = "reading" // long text, cut, whole on demand
)

// column is a column of a list.
type column struct {
	label string
	expr  string // SQL over the source of the list
	kind  kind
	// link is the path of a page about the value, which stands for %s in it; empty for none.
	link string
}

// filter is a condition that the address of the page may have.
type filter struct {
	name, label string
	where       string // SQL in which ? stands for the value, as text
	choices     []string
}

// listing is a list of rows of a view, with what may be done to them. Its SQL is of this package alone; what a user writes is a
// parameter of it.
type listing struct {
	path, title string
	// about says what the rows are, in a sentence.
	about string
	// none says what it means that there are none.
	none    string
	from    string
	columns []column
	filters []filter
	order   string
	// values gives the values of all columns, where they are no expressions over a source.
	values func(ctx context.Context, tx pgx.Tx) ([][]*string, error)
	// key are expressions that name a row, as text; none where nothing can be done to it.
	key     []string
	actions []action
}

// cell is a value as a page shows it.
type cell struct {
	Kind, Text, Link string
	IsNull           bool
}

// row is a row as a page shows it.
type row struct {
	Key   string // in JSON
	Cells []cell
}

// list is a list as a page shows it.
type list struct {
	Path, Title, About, None string
	Labels                   []label
	Filters                  []shownFilter
	Rows                     []row
	IsMore, IsFiltered       bool
	Most                     int
	Actions                  []action
	Token                    string
}

type label struct {
	Text, Kind string
}

type shownFilter struct {
	Name, Label, Value string
	Choices            []string
}

// statement gives the query of the list under the filters of an address, with its parameters.
func (l listing) statement(given url.Values, wanted []string, limit int) (sql string, parameters []any) {
	var where []string
	for _, f := range l.filters {
		value := strings.TrimSpace(given.Get(f.name))
		if value == "" {
			continue
		}
		parameters = append(parameters, value)
		where = append(where, "("+strings.ReplaceAll(f.where, "?", "$"+strconv.Itoa(len(parameters))+"::text")+")")
	}
	sql = "select " + strings.Join(wanted, ", ") + " from " + l.from
	if len(where) > 0 {
		sql += " where " + strings.Join(where, " and ")
	}
	if l.order != "" {
		sql += " order by " + l.order
	}
	return sql + " limit " + strconv.Itoa(limit), parameters
}

// keyExpression gives the key of a row as a list of texts in JSON.
func (l listing) keyExpression() string {
	if len(l.key) == 0 {
		return "null::text"
	}
	return "to_json(array[(" + strings.Join(l.key, ")::text, (") + ")::text])::text"
}

// read reads the rows of the list under the filters of an address.
func (l listing) read(ctx context.Context, tx pgx.Tx, given url.Values) (list, error) {
	shown := list{
		Path: l.path, Title: l.title, About: l.about, None: l.none, Actions: l.actions, Most: rowsMost,
	}
	wanted := []string{l.keyExpression()}
	for _, c := range l.columns {
		wanted = append(wanted, "("+c.expr+")::text")
		shown.Labels = append(shown.Labels, label{Text: c.label, Kind: string(c.kind)})
	}
	for _, f := range l.filters {
		value := strings.TrimSpace(given.Get(f.name))
		shown.IsFiltered = shown.IsFiltered || value != ""
		shown.Filters = append(shown.Filters, shownFilter{Name: f.name, Label: f.label, Value: value, Choices: f.choices})
	}
	if l.values != nil {
		found, err := l.values(ctx, tx)
		for _, values := range found {
			shown.Rows = append(shown.Rows, l.row(nil, values))
		}
		return shown, err
	}
	sql, parameters := l.statement(given, wanted, rowsMost+1)
	rows, err := tx.Query(ctx, sql, parameters...)
	if err != nil {
		return shown, fmt.Errorf("read %s: %w", l.title, err)
	}
	shown.Rows, err = pgx.CollectRows(rows, l.scan)
	if err != nil {
		return shown, fmt.Errorf("read %s: %w", l.title, err)
	}
	if len(shown.Rows) > rowsMost {
		shown.Rows, shown.IsMore = shown.Rows[:rowsMost], true
	}
	return shown, nil
}

func (l listing) scan(found pgx.CollectableRow) (row, error) {
	values := make([]*string, len(l.columns)+1)
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := found.Scan(targets...); err != nil {
		return row{}, err
	}
	return l.row(values[0], values[1:]), nil
}

// row formats the values of a row.
func (l listing) row(key *string, values []*string) row {
	var r row
	if key != nil {
		r.Key = *key
	}
	for i, c := range l.columns {
		r.Cells = append(r.Cells, c.cell(values[i]))
	}
	return r
}

// cell formats a value of the column.
func (c column) cell(value *string) cell {
	made := cell{Kind: string(c.kind)}
	if value == nil {
		made.IsNull, made.Text = true, "–"
		return made
	}
	made.Text = *value
	made.Text = c.kind.format(*value)
	if c.link != "" {
		made.Link = fmt.Sprintf(c.link, url.PathEscape(*value))
	}
	return made
}

// format writes a value, as the database gives it in text, for people. A value that is not of its kind stays as it is.
func (k kind) format(value string) string {
	if k == moment {
		at, _, _ := strings.Cut(strings.TrimSuffix(value, "+00"), ".")
		return at
	}
	if k == span {
		if seconds, err := strconv.ParseFloat(value, 64); err == nil {
			return formatSeconds(&seconds)
		}
	}
	if whole, err := strconv.ParseInt(value, 10, 64); err == nil && k == number {
		return formatCount(whole)
	} else if err == nil && k == size {
		return formatSize(whole)
	}
	return value
}

// keys gives the keys of the rows that an action is to work on: those that are chosen, or all that the filters keep.
func (l listing) keys(ctx context.Context, tx pgx.Tx, form, given url.Values) (keys [][]string, isMore bool, err error) {
	texts := form["key"]
	if form.Get("all") != "" {
		sql, parameters := l.statement(given, []string{l.keyExpression()}, keysMost+1)
		rows, err := tx.Query(ctx, sql, parameters...)
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", l.title, err)
		}
		if texts, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return nil, false, fmt.Errorf("read %s: %w", l.title, err)
		}
	}
	for _, one := range texts {
		var key []string
		if err := json.Unmarshal([]byte(one), &key); err != nil || len(key) != len(l.key) {
			return nil, false, refused{http.StatusBadRequest, "This form names no row of the list."}
		}
		keys = append(keys, key)
	}
	if len(keys) > keysMost {
		keys, isMore = keys[:keysMost], true
	}
	return keys, isMore, nil
}
