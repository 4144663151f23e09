package sqlrules_test

import (
	"strings"
	"testing"
)

// A function on the list of those that do not pin their search_path.
func unpinnedFn(body string) string {
	text := strings.Replace(fn("parley.send", "BODY"), "set search_path = pg_catalog, pg_temp\n", "", 1)
	return "-- Head.\n" + strings.Replace(text, "begin\n  BODY\nend", body, 1)
}

func TestUnpinnedFunctionsSpellEverythingInFull(t *testing.T) {
	t.Parallel()
	refused := map[string]string{
		"a call":                    "begin perform now(); end",
		"a call of ours":            "begin perform _p_append(1); end",
		"a relation":                "begin perform from _p_t as t; end",
		"a relation joined":         "begin perform from parley._p_t as t join _p_u as u on true; end",
		"a relation updated":        "begin update _p_t set a = 1; end",
		"a relation filled":         "begin insert into _p_t (a) values (1); end",
		"an operator":               "begin perform 1 + 1; end",
		"a comparison in a where":   "begin update parley._p_t set a = 1 where b = 2; end",
		"a product":                 "begin perform a * b from parley._p_t; end",
		"a type cast to":            "begin perform 1::text; end",
		"a type declared":           "declare v_a text; begin null; end",
		"a constant's type":         "declare v_a bigint; v_b constant uuid := null; begin null; end",
		"in":                        "begin perform a in (1) from parley._p_t; end",
		"between":                   "begin perform a between 1 and 2 from parley._p_t; end",
		"nullif":                    "begin perform nullif(a, 1) from parley._p_t; end",
		"is distinct from":          "begin perform a is distinct from b from parley._p_t; end",
		"case with an operand":      "begin perform case a when 1 then 2 end from parley._p_t; end",
		"a join by name of columns": "begin perform from parley._p_t join parley._p_u using (a); end",
		"a deletion beside another": "begin delete from parley._p_t as t using _p_u as u where t.a; end",
	}
	for name, body := range refused {
		t.Run("refuses "+name, func(t *testing.T) {
			t.Parallel()
			found := check("", unpinnedFn(body))
			if len(found) != 1 || found[0].Rule != "qualified" {
				t.Errorf("got %v for %s, want one word on what is not qualified", found, body)
			}
		})
	}
	accepted := map[string]string{
		"a call":                      "begin perform pg_catalog.now(), coalesce(1, 2); end",
		"an operator":                 "begin perform 1 operator(pg_catalog.*) 2; end",
		"a relation and its alias":    "begin perform t.a from only parley._p_t as t for key share of t; end",
		"a common table expression":   "begin with x (a) as materialized (select 1), y as (select a from x) select a into v_a from y; end",
		"a set clause":                "begin update parley._p_t as t set a = 1, b = pg_catalog.abs(2); end",
		"a set clause with a row":     "begin update parley._p_t as t set (a, b) = (select 1, 2); end",
		"a type":                      "declare v_a pg_catalog.text; v_b bigint; v_c parley._p_t.a%type; begin perform 1::pg_catalog.int8, 1::integer; end",
		"a loop":                      "begin for i in 1 .. 2 loop null; end loop; end",
		"a case without operand":      "begin perform case when true then 1 else 2 end; end",
		"dynamic SQL with parameters": "begin execute 'select 1' using v_a; end",
		"the epoch":                   "begin perform extract(epoch from v_a); end",
		"an upsert":                   "begin insert into parley._p_t (a) values (1) on conflict (a) do update set a = 2; end",
		"a deletion beside another":   "begin delete from parley._p_t as t using parley._p_u as u where t.a; end",
		"a count":                     "begin perform pg_catalog.count(*) from parley._p_t; end",
	}
	for name, body := range accepted {
		t.Run("accepts "+name, func(t *testing.T) {
			t.Parallel()
			for _, v := range check("", unpinnedFn(body)) {
				t.Errorf("%v for %s", v, body)
			}
		})
	}
}
