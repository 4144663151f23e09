package queues_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// Daemons that record at once, operators, and sessions that take back leases or limit lanes meanwhile lock lanes in one order, that of
// their numbers. The names of the lanes and the leases do not matter: none of them waits for another one that waits for it.
func TestLanesAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	// The lane that comes first by its number is the last by its name and by its lease, and stands last in each table.
	const first, second = "DNS/z/x.example", "DNS/a/x.example"
	messages := []int64{b.Delivery(first, "", "x@x.example"), b.Delivery(second, "", "y@x.example")}
	lane, lease, item := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, name := range []string{second, first} {
		var of, claimed int64
		if err := b.DB.QueryRow(t.Context(), "select lease_id, item_id from parley_store.claim_lane('mail', $1)", name).Scan(&of, &claimed); err != nil {
			t.Fatalf("claim %s: %v", name, sqltest.Describe(err))
		}
		lane[name] = sqltest.Value[int64](b.Session, "select lane_id from parley_store.lanes where lane = $1", name)
		lease[name], item[name] = of, claimed
	}
	if lane[first] > lane[second] || lease[first] < lease[second] {
		t.Fatalf("the lanes are %v, their leases %v", lane, lease)
	}
	leases, items := []int64{lease[first], lease[second]}, []int64{item[first], item[second]}
	b.Exec("select parley_store.put_work('mail', $1, $2, deliver_at => now() + interval '1 hour')", []string{first, second}, messages)
	b.Exec("update parley_store._p_lane_state set is_blocked = true where lane_id = any ($1)", []int64{lane[first], lane[second]})
	b.Exec("update parley_store._p_lease set until = now() - case lease_id when $1 then interval '1 hour' else interval '1 minute' end", lease[second])

	const (
		state, row, held = "_p_lane_state", "_p_lane", "_p_lease"
		delayed          = "array(select item_id from parley_store._p_delayed_item order by lane_id desc)"
		outcomes         = "parley_mail._p_record_outcomes($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, lanes => $12)"
	)
	none, texts, both := []int64{}, []string{}, []string{second, first}
	for _, c := range []struct {
		rule, table, statement string
		arguments              []any
		before                 string
	}{
		{rule: "who reports hops", table: state, statement: "select parley_mail._p_report_hops($1, array['none', null], array[now(), now()])", arguments: []any{both}},
		{rule: "who gives hops limits", table: state, statement: "select parley_mail._p_set_hops($1)", arguments: []any{both}},
		{rule: "who takes back leases of all", table: state, statement: "select parley_store.expire_leases()"},
		{rule: "who takes back leases of a system", table: state, statement: "select parley_store.take_back_leases('mail')"},
		{rule: "who completes", table: state, statement: "select parley_store.complete_claimed($1, $2)", arguments: []any{leases, items}},
		{rule: "who completes, of leases", table: held, statement: "select parley_store.complete_claimed($1, $2)", arguments: []any{leases, items}},
		{rule: "who is to do several things", table: state, statement: "select parley_store.lock_lanes('mail', $1, $2)", arguments: []any{leases[:1], both[:1]}},
		{rule: "who is to do several things, of leases", table: held, statement: "select parley_store.lock_lanes('mail', $1, null)", arguments: []any{leases}},
		{
			rule: "who gives back under several leases", table: state, statement: "select " + outcomes,
			arguments: []any{none, none, none, none, texts, none, texts, texts, texts, leases, items, nil},
		},
		{
			rule: "who records and then reports", table: state, statement: "select " + outcomes + ", parley_mail._p_report_hops($12, array['none'], array[now()])",
			arguments: []any{leases[1:], items[1:], messages[1:], []int{1}, []string{"RELAYED"}, []int{250}, []string{"2.0.0"}, []string{"ok"}, []string{"h"}, none, none, both[1:]},
		},
		{rule: "who makes items ready", table: row, statement: "select parley_store._p_make_ready(" + delayed + ")"},
		{rule: "who changes items", table: row, statement: "select parley_store.change_work('mail', " + delayed + ", due_at => now())"},
		{rule: "who puts work", table: row, statement: "select parley_store.put_work('mail', $1, $2)", arguments: []any{both, messages}},
		{rule: "who holds a domain", table: state, statement: "select parley_mail.hold_domain('x.example')"},
		{
			rule: "who releases a domain", table: state, statement: "select parley_mail.release_domain('x.example')",
			before: "select parley_mail.hold_domain('x.example')",
		},
		{
			rule: "who gives up what has expired", table: state, statement: "select parley_mail._p_expire_waiting()", before: `
				with put as (
					select parley_store.put_work('mail', array['` + second + `', '` + first + `'], array[max(message_id), min(message_id)], expires_at => now() - interval '1 minute')
					from parley_mail._p_message
				)
				update parley_store._p_lane_state set failures = 1, is_blocked = true from put where is_blocked`,
		},
	} {
		if c.before != "" {
			b.Exec(c.before)
		}
		moveBehind(b, state, "lane_id", "visited_at", lane[first], lane[second])
		moveBehind(b, row, "lane_id", "created_at", lane[first], lane[second])
		key, at, next := "lane_id", lane[first], lane[second]
		if c.table == held {
			key, at, next = "lease_id", lease[second], lease[first]
			moveBehind(b, held, key, "until", at, next)
		} else {
			moveBehind(b, held, "lease_id", "until", lease[first], lease[second])
		}
		lock := "select from parley_store." + c.table + " where " + key + " = $1 for update"
		requireOrder(b, c.rule, lock, at, next, c.statement, c.arguments...)
	}
	// Lanes that are made have no numbers yet, and come by name.
	names := []string{"h", "c", "e", "a", "g", "b", "f", "d"}
	requireOrder(b, "who makes lanes", "insert into parley_store._p_lane (system, lane) select 'mail', u from unnest($1::text[]) as u", []string{"a"},
		[]string{"b", "c", "d", "e", "f", "g", "h"}, "select parley_store._p_make_lanes('mail', $1)", names)
}

// moveBehind puts a row of the store behind another one in its table, where a scan without an order comes to it later.
func moveBehind(b *sqltest.Broker, table, key, column string, last, first int64) {
	b.Helper()
	for range 200 {
		if sqltest.Value[bool](b.Session, "select l.ctid > f.ctid from parley_store."+table+" as l, parley_store."+table+" as f where l."+key+" = $1 and f."+key+" = $2", last, first) {
			return
		}
		b.Exec("update parley_store."+table+" set "+column+" = "+column+" where "+key+" = $1", last)
	}
	b.Fatalf("row %d of %s does not move", last, table)
}

// requireOrder requires that a statement takes what lock takes first before what it takes next: while it waits for the first, the next is free.
// It is rolled back.
func requireOrder(b *sqltest.Broker, rule, lock string, first, next any, statement string, arguments ...any) {
	b.Helper()
	// They are rolled back by the driver, so that the pool has their connections again.
	begin := func() (sqltest.Session, pgx.Tx) {
		tx, err := b.Pool.Begin(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return sqltest.Session{T: b.T, DB: tx}, tx
	}
	holder, holding := begin()
	s, waiting := begin()
	holder.Exec("set local lock_timeout = '500ms'")
	holder.Exec(lock, first)
	// Plans without indexes and sorts have no order that the statement did not ask for.
	s.Exec("set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_mergejoin = off; set local enable_sort = off")
	pid := sqltest.Value[int](holder, "select pg_backend_pid()")
	waiter := b.StartIn(s, statement, arguments...)
	parleytest.Until(b, "the statement waits or ends", func() bool {
		return len(waiter.Done) > 0 || sqltest.Value[bool](b.Session, "select $1 = any (pg_blocking_pids($2))", pid, waiter.Backend)
	})
	if len(waiter.Done) > 0 {
		b.Errorf("%s: did not wait for the first", rule)
	} else if _, err := holder.DB.Exec(b.Context(), lock, next); err != nil {
		if refused, is := errors.AsType[*pgconn.PgError](err); !is || refused.Code != "55P03" {
			b.Errorf("%s: %v", rule, sqltest.Describe(err))
		}
		b.Errorf("%s: the next was locked before the first", rule)
	}
	if err := holding.Rollback(b.Context()); err != nil {
		b.Error(err)
	}
	waiter.RequireSuccess()
	if err := waiting.Rollback(b.Context()); err != nil {
		b.Error(err)
	}
}
