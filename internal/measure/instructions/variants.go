package instructions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Variant is one call, or several that belong together.
type Variant struct {
	Name  string
	Short string
	// transactions hold statements, which the call makes one after the other. A handle that one of them gives is the parameter of the next
	// one that has a parameter.
	transactions [][]string
}

// The bare INSERT is the first: all others are divided by it.
var variants = []Variant{
	{"insert", "a bare INSERT", [][]string{{"insert into bare (body) values ('hello')"}}},
	{"begin_then_send", "begin_dialog and send in one transaction", [][]string{beginThenSend}},
	{"begin_and_send", "both in one call", [][]string{{
		`select parley.begin_and_send(
			from_service => 'life_initiator', to_service => 'life', message_type => 'measured', body => 'hello'::bytea, contract => 'measured'
		)`,
	}}},
	{"life", "begin, send; receive, end; receive, end: three transactions", [][]string{
		{"select parley.begin_dialog(from_service => 'short_initiator', to_service => 'short', contract => 'measured')", sendOne},
		{"select r.conversation_handle from parley.receive('short') as r", "select parley.end_conversation($1)"},
		{"select r.conversation_handle from parley.receive('short_initiator') as r", "select parley.end_conversation($1)"},
	}},
	{"send", "send on an open conversation", [][]string{{
		"select handle from opened where number = 0", sendOne,
	}}},
	{"receive", "receive one of ten conversations", [][]string{{"select r.conversation_handle from parley.receive('single', 1) as r"}}},
	{"receive_100", "receive 100 of one conversation, sent in batches", [][]string{{
		"select (array_agg(r.conversation_handle))[1] from parley.receive('framed', 100) as r",
	}}},
	{"receive_and_end_100", "receive 100 groups and end them in one statement", [][]string{{
		"select parley.end_conversations(array_agg(r.conversation_handle)) from parley.receive('many', groups => 100) as r",
	}}},
	{"put", "put one", [][]string{{"select parley.put('puts', 'hello'::bytea)"}}},
	{"take", "take one", [][]string{{"select t.message_id from parley.take('takes', 1) as t"}}},
}

const sendOne = "select parley.send(conversation_handle => $1, message_type => 'measured', body => 'hello'::bytea)"

var beginThenSend = []string{
	"select parley.begin_dialog(from_service => 'life_initiator', to_service => 'life', contract => 'measured')", sendOne,
}

// warmUp is how many calls a session makes before those that count: until then its statements may be planned anew each time.
const warmUp = 20

// furniture prepares a database for so many calls of each variant.
const furniture = `
	create table bare (id bigint generated always as identity, body bytea);
	select parley.create_message_type('measured', 'NONE');
	select parley.create_contract('measured', array['measured']);
	select parley.create_queue(q || s), parley.create_service(name => q || s, queue => q || s, contracts => array['measured'])
	from unnest(array['life', 'short', 'open', 'single', 'framed', 'many']) as q, unnest(array['', '_initiator']) as s;
	select parley.create_queue('puts', kind => 'SIMPLE'), parley.create_queue('takes', kind => 'SIMPLE');
	create table opened as
	select n as number, parley.begin_and_send(
		from_service => 'open_initiator', to_service => 'open', message_type => 'measured', body => 'hello'::bytea, contract => 'measured'
	) as handle
	from generate_series(0, 9) as n;
	create table single as
	select parley.begin_dialog(from_service => 'single_initiator', to_service => 'single', contract => 'measured') as handle
	from generate_series(0, 9) as n;
	select count(parley.send(conversation_handle => s.handle, message_type => 'measured', body => 'hello'::bytea))
	from generate_series(0, %[1]d / 10) as n, single as s;
	create table framed as
	select parley.begin_dialog(from_service => 'framed_initiator', to_service => 'framed', contract => 'measured') as handle;
	select count(parley.send_batch_binary(conversation_handle => f.handle, message_type => 'measured', bodies => b.bodies))
	from framed as f,
		(select array_agg(decode(repeat('ab', 100), 'hex')) as bodies from generate_series(1, 1000)) as b,
		generate_series(0, %[1]d / 10) as n;
	select count(parley.begin_and_send(
		from_service => 'many_initiator', to_service => 'many', message_type => 'measured', body => 'hello'::bytea, contract => 'measured'
	))
	from generate_series(1, 100 * %[1]d) as n;
	select count(parley.put('takes', 'hello'::bytea)) from generate_series(0, %[1]d) as n`

// Variants lists what can be counted.
func Variants() []Variant { return slices.Clone(variants) }

// choose gives the variants of some names, or all; the bare INSERT is always among them.
func choose(names []string) ([]Variant, error) {
	if len(names) == 0 {
		return variants, nil
	}
	chosen := variants[:1:1]
	for _, name := range names {
		i := slices.IndexFunc(variants, func(v Variant) bool { return v.Name == name })
		if i < 0 {
			var known []string
			for _, v := range variants {
				known = append(known, v.Name)
			}
			return nil, fmt.Errorf("variant %q is unknown: there are %s", name, strings.Join(known, ", "))
		}
		if i > 0 {
			chosen = append(chosen, variants[i])
		}
	}
	return chosen, nil
}

// call makes the call once.
func (v Variant) call(ctx context.Context, conn *pgx.Conn) error {
	for _, statements := range v.transactions {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return fmt.Errorf("begin a transaction: %w", err)
		}
		var given any
		for _, statement := range statements {
			var parameters []any
			if strings.Contains(statement, "$1") {
				parameters = append(parameters, given)
			}
			rows, err := tx.Query(ctx, statement, parameters...)
			if err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			found := false
			for rows.Next() {
				values, err := rows.Values()
				if err != nil {
					return fmt.Errorf("%s: %w", statement, err)
				}
				given, found = values[0], true
			}
			if err := rows.Err(); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			if strings.Contains(statement, " from ") && (!found || given == nil || given == int32(0)) {
				return fmt.Errorf("%s: it found nothing", statement)
			}
		}
		if err := tx.Commit(ctx); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}
