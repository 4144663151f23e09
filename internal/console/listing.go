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

	"github.com/parley-broker/parley/internal/pgdb"
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
	// link is the path of a page about the value, which stands for %s in it, or about the row, whose key stands for ofKey; empty for none.
	link string
}

// ofKey stands in a link for the key of the row.
const ofKey = "%key"

// filter is a condition that the address of the page may have.
type filter struct {
	name, label string
	where       string // SQL in which ? stands for the value, as text
	choices     []string
	// asked makes the value a condition of a function's own filter, of this kind; it has no where then.
	asked asked
}

// asked is how a condition of a function's filter has its value in JSON.
type asked int

const (
	notAsked asked = iota
	asText
	asNumber
	asNumbers // a list of one
)

// listing is a list of rows of a view, with what may be done to them. Its SQL is of this package alone; what a user writes is a
// parameter of it.
type listing struct {
	path, title string
	// about says what the rows are, in a sentence.
	about string
	// none says what it means that there are none.
	none string
	// from is a source of rows. In the call of a function $filter stands for its filter, $top for how many it gives at most, and $after
	// for the number behind which it gives them, which is then the order.
	from    string
	columns []column
	filters []filter
	order   []sorting
	// key are expressions that name a row, as text; none where nothing can be done to it.
	key []string
	// identity is an expression by whose value the source finds a row at once, where its columns cost much: then they are computed of the
	// rows of the page alone. Empty for none.
	identity string
	actions  []action
}

// estimated gives the expression of a count whose row says whether it is an estimate, with its mark.
func estimated(count string) string {
	return "case when x.is_estimated then '≈ ' else '' end || " + count
}

// cell is a value as a page shows it.
type cell struct {
	Kind, Text, Link string
	IsNull           bool
}

// row is a row as a page shows it.
type row struct {
	Key   string // in JSON
	Name  string // the key for people
	Cells []cell
	place []string
}

// list is a list as a page shows it.
type list struct {
	Path, Title, About, None string
	Labels                   []label
	Filters                  []shownFilter
	Rows                     []row
	IsFiltered               bool
	// IsUnordered reports that the rows are some of too many to be put in order.
	IsUnordered bool
	Pages       paged
	Actions     []action
	Token       string
}

type label struct {
	Text, Kind string
}

type shownFilter struct {
	Name, Label, Value string
	Choices            []string
}

// statement gives the query of the list under the filters of an address, with its parameters: the rows behind a place, nil for all. It
// has no order where somebody wants some of the rows, whichever they are.
func (l listing) statement(given url.Values, wanted, place []string, limit int, isOrdered bool) (sql string, parameters []any) {
	var where []string
	from := strings.ReplaceAll(l.from, "$top", strconv.Itoa(limit))
	if strings.Contains(from, "$filter") {
		parameters = append(parameters, l.conditions(given))
		from = strings.ReplaceAll(from, "$filter", "$1::text::jsonb")
	}
	if isGiven := strings.Contains(from, "$after"); isGiven && place == nil {
		from = strings.ReplaceAll(from, "$after", "null")
	} else if isGiven {
		parameters = append(parameters, place[0])
		from = strings.ReplaceAll(from, "$after", "$"+strconv.Itoa(len(parameters))+"::text::"+l.order[0].as)
	} else if place != nil {
		where = append(where, l.behind(len(parameters)+1))
		for _, value := range place {
			parameters = append(parameters, value)
		}
	}
	for _, f := range l.filters {
		value := strings.TrimSpace(given.Get(f.name))
		if value == "" || f.asked != notAsked {
			continue
		}
		parameters = append(parameters, value)
		where = append(where, "("+strings.ReplaceAll(f.where, "?", "$"+strconv.Itoa(len(parameters))+"::text")+")")
	}
	rows := " from " + from
	if len(where) > 0 {
		rows += " where " + strings.Join(where, " and ")
	}
	order := " limit " + strconv.Itoa(limit)
	if isOrdered {
		order = " order by " + l.orderBy() + order
	}
	if l.identity != "" {
		rows = " from " + from + " where " + l.identity + " = any (array(select " + l.identity + rows + order + "))"
	}
	return "select " + strings.Join(wanted, ", ") + rows + order, parameters
}

// conditions gives the filter of a function in JSON. A value that is not of its kind is given as text, which the function refuses.
func (l listing) conditions(given url.Values) string {
	made := map[string]any{}
	for _, f := range l.filters {
		value := strings.TrimSpace(given.Get(f.name))
		if value == "" || f.asked == notAsked {
			continue
		}
		made[f.name] = value
		number, err := strconv.ParseInt(value, 10, 64)
		switch {
		case f.asked == asNumber && err == nil:
			made[f.name] = number
		case f.asked == asNumbers && err == nil:
			made[f.name] = []int64{number}
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
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
		Path: l.path, Title: l.title, About: l.about, None: l.none, Actions: l.actions,
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
	place, err := l.placeIn(given)
	if err != nil {
		return shown, err
	}
	isOrdered, err := l.inOrder(ctx, tx, func(part pgx.Tx, isOrdered bool) error {
		sql, parameters := l.statement(given, append(wanted, l.places()...), place, rowsMost+1, isOrdered)
		rows, err := part.Query(ctx, sql, parameters...)
		if err != nil {
			return err
		}
		shown.Rows, err = pgx.CollectRows(rows, l.scan)
		return err
	})
	if err != nil {
		return shown, fmt.Errorf("read %s: %w", l.title, err)
	}
	var last []string
	if len(shown.Rows) > rowsMost {
		shown.Rows = shown.Rows[:rowsMost]
		last = shown.Rows[rowsMost-1].place
	}
	if !isOrdered {
		shown.IsUnordered, last = last != nil, nil // behind which row would the next page begin?
	}
	shown.Pages = l.pagesOf(given, last)
	return shown, nil
}

// switchSorts switches the sorts of the planner, which has no other way to know that a list is cut short: without them it reads a
// view whose own order is that of the list by an index.
const switchSorts = "select pg_catalog.set_config('enable_sort', $1, true)"

// inOrder has rows read in the order of the list, and, where to put them in order takes too long, some of them without.
func (l listing) inOrder(
	ctx context.Context, tx pgx.Tx, read func(part pgx.Tx, isOrdered bool) error,
) (isOrdered bool, err error) {
	err = withinBudget(ctx, tx, orderBudget, func(part pgx.Tx) error {
		if _, err := part.Exec(ctx, switchSorts, "off"); err != nil {
			return err
		}
		if err := read(part, true); err != nil {
			return err
		}
		_, err := part.Exec(ctx, switchSorts, "on")
		return err
	})
	if !pgdb.TookTooLong(err) || ctx.Err() != nil {
		return true, err
	}
	return false, read(tx, false)
}

func (l listing) scan(found pgx.CollectableRow) (row, error) {
	values := make([]*string, 1+len(l.columns)+len(l.order))
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := found.Scan(targets...); err != nil {
		return row{}, err
	}
	r := l.row(values[0], values[1:])
	for _, value := range values[1+len(l.columns):] {
		if value == nil {
			return row{}, fmt.Errorf("a value of the order of %s is null", l.path)
		}
		r.place = append(r.place, *value)
	}
	return r, nil
}

// row formats the values of a row.
func (l listing) row(key *string, values []*string) row {
	var r row
	if key != nil {
		r.Key, r.Name = *key, strings.Join(keyParts(*key), " ")
	}
	for i, c := range l.columns {
		made := c.cell(values[i])
		if path, ok := strings.CutSuffix(c.link, ofKey); ok && key != nil {
			made.Link = path + keyPath(*key)
		}
		r.Cells = append(r.Cells, made)
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
	if c.link != "" && !strings.HasSuffix(c.link, ofKey) {
		made.Link = fmt.Sprintf(c.link, escapeFor(c.link)(*value))
	}
	return made
}

func keyParts(key string) (parts []string) {
	if err := json.Unmarshal([]byte(key), &parts); err != nil {
		panic(fmt.Errorf("the database gives the key %s: %w", key, err))
	}
	return parts
}

// keyPath gives the parts of a key as segments of a path.
func keyPath(key string) string {
	parts := keyParts(key)
	for i, one := range parts {
		parts[i] = url.PathEscape(one)
	}
	return strings.Join(parts, "/")
}

// escapeFor gives what keeps a value in its place in a path, or in the query behind it.
func escapeFor(link string) func(string) string {
	if strings.Contains(link, "?") {
		return url.QueryEscape
	}
	return url.PathEscape
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
	if estimate, ok := strings.CutPrefix(value, "≈ "); ok && k == number {
		return "≈ " + k.format(estimate)
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
		_, err := l.inOrder(ctx, tx, func(part pgx.Tx, isOrdered bool) error {
			sql, parameters := l.statement(given, []string{l.keyExpression()}, nil, keysMost+1, isOrdered)
			rows, err := part.Query(ctx, sql, parameters...)
			if err != nil {
				return err
			}
			texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		if err != nil {
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
