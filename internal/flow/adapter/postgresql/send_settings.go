package postgresql

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sendSettings are those of a port.
type sendSettings struct {
	Table            string            `json:"table"`
	Columns          map[string]source `json:"columns"`
	Key              []string          `json:"key"`
	OnConflict       string            `json:"on_conflict"`
	Function         string            `json:"function"`
	Arguments        map[string]source `json:"arguments"`
	Statement        string            `json:"statement"`
	Parameters       []source          `json:"parameters"`
	Retried          []string          `json:"retried"`
	SearchPath       string            `json:"search_path"`
	StatementTimeout adapter.Duration  `json:"statement_timeout"`
	Connections      int               `json:"connections"`
	TLS              string            `json:"tls"`
}

// catalogOnly is the search_path of statements without another: names of users' objects have their schema.
const catalogOnly = "pg_catalog, pg_temp"

func defaultSend() sendSettings {
	return sendSettings{
		OnConflict: "error", Retried: []string{"08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "XX"},
		SearchPath: catalogOnly, StatementTimeout: adapter.Duration(30 * time.Second), Connections: 4, TLS: "verify-full",
	}
}

// write is the statement of a port, and what its parameters are.
type write struct {
	text    string
	sources []source
}

// readSend reads the address and the settings of a port, and gives all that is wrong with them. has says which secrets there are.
func readSend(address string, raw json.RawMessage, has func(secret string) bool) (place, sendSettings, []adapter.Problem) {
	s := defaultSend()
	problems := adapter.CheckSettings(raw, &s)
	at, found := checkAddress(address, s.TLS, has)
	problems = append(problems, found...)
	problems = append(problems, adapter.OneOf("on_conflict", s.OnConflict, "error", "nothing", "update")...)
	problems = append(problems, adapter.Between("connections", int64(s.Connections), 1, 100)...)
	problems = append(problems, adapter.NotBelow("statement_timeout", s.StatementTimeout, adapter.Duration(time.Millisecond))...)
	for _, state := range s.Retried {
		if len(state) != 2 && len(state) != 5 {
			problems = append(problems, wrong(fmt.Sprintf("%q is no SQLSTATE, and no class of them", state),
				`Write five characters, or the first two, in quotes: "40", "55P03".`, "retried"))
		}
	}
	w, found := s.write()
	problems = append(problems, found...)
	if len(found) == 0 && !at.isLocal && address != "" && !slices.ContainsFunc(w.sources, source.isMessageID) {
		problems = append(problems, wrong("another database may get a message twice, and has nothing to know it by",
			"Give it {property: MessageID}, in a column of key with on_conflict, or as an argument.", s.kind()...))
	}
	return at, s, problems
}

// kind gives the path of the setting that says what is written.
func (s *sendSettings) kind() []string {
	switch {
	case s.Table != "":
		return []string{"columns"}
	case s.Function != "":
		return []string{"arguments"}
	}
	return []string{"parameters"}
}

// write makes the statement.
func (s *sendSettings) write() (w write, problems []adapter.Problem) {
	given := 0
	for _, is := range []bool{s.Table != "", s.Function != "", s.Statement != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return w, []adapter.Problem{wrong("one of table, function and statement says what is written", "Give one of them.")}
	case s.Table != "":
		return s.insert()
	case s.Function != "":
		return s.call()
	}
	parameters, err := checkStatement(s.Statement)
	if err != nil {
		return w, []adapter.Problem{wrong(err.Error(), "Write one statement, with $1 and on for values.", "statement")}
	}
	if parameters != len(s.Parameters) {
		return w, []adapter.Problem{wrong(fmt.Sprintf("the statement has %d, and %d are given", parameters, len(s.Parameters)),
			"Give as many as the statement has.", "parameters")}
	}
	return write{s.Statement, s.Parameters}, nil
}

func (s *sendSettings) insert() (w write, problems []adapter.Problem) {
	table, err := quotedName(s.Table)
	if err != nil {
		return w, []adapter.Problem{wrong(err.Error(), "Write schema.table.", "table")}
	}
	if s.SearchPath == catalogOnly && !strings.Contains(s.Table, ".") {
		problems = append(problems, wrong(fmt.Sprintf("the table %q has no schema, and the search_path finds it in none", s.Table),
			fmt.Sprintf("Write schema.table, such as public.%s, or give a search_path.", s.Table), "table"))
	}
	if len(s.Columns) == 0 {
		return w, append(problems, wrong("no column gets a value", "Give each column its value.", "columns"))
	}
	var columns, values, updates []string
	for i, name := range slices.Sorted(maps.Keys(s.Columns)) {
		columns, values = append(columns, quoted(name)), append(values, "$"+strconv.Itoa(i+1))
		w.sources = append(w.sources, s.Columns[name])
		if !slices.Contains(s.Key, name) {
			updates = append(updates, quoted(name)+" = excluded."+quoted(name))
		}
	}
	w.text = fmt.Sprintf("insert into %s (%s) values (%s)", table, strings.Join(columns, ", "), strings.Join(values, ", "))
	if s.OnConflict == "error" {
		return w, problems
	}
	var key []string
	for _, name := range s.Key {
		if _, ok := s.Columns[name]; !ok {
			problems = append(problems, wrong(fmt.Sprintf("the column %q has no value", name), "Give it one under columns.", "key"))
		}
		key = append(key, quoted(name))
	}
	if len(key) == 0 {
		return w, append(problems, wrong("nothing says which rows are the same", "Name the columns of a unique index.", "key"))
	}
	w.text += " on conflict (" + strings.Join(key, ", ") + ") do "
	if s.OnConflict == "nothing" || len(updates) == 0 {
		w.text += "nothing"
	} else {
		w.text += "update set " + strings.Join(updates, ", ")
	}
	return w, problems
}

func (s *sendSettings) call() (w write, problems []adapter.Problem) {
	function, err := quotedName(s.Function)
	if err != nil {
		return w, []adapter.Problem{wrong(err.Error(), "Write schema.function.", "function")}
	}
	var arguments []string
	for i, name := range slices.Sorted(maps.Keys(s.Arguments)) {
		arguments = append(arguments, quoted(name)+" => $"+strconv.Itoa(i+1))
		w.sources = append(w.sources, s.Arguments[name])
	}
	w.text = "select from " + function + "(" + strings.Join(arguments, ", ") + ")"
	return w, nil
}
