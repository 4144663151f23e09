package sqlrules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqlrules"
)

// fn writes a function that keeps every rule, with one body, for a test to put a fault into.
func fn(name, body string) string {
	return "create function " + name + "() returns void\nlanguage plpgsql\nset search_path = pg_catalog, pg_temp\nas $$\nbegin\n  " +
		body + "\nend\n$$;\n\ncomment on function " + name + "() is 'Does it.';\n"
}

func TestRulesRefuse(t *testing.T) {
	t.Parallel()
	long := "-- " + strings.Repeat("x", 160) + "\n"
	cases := []struct {
		name, file, sql string
		want            []string // the rules that are broken
	}{
		{name: "a file outside of the folders", file: "send.sql", sql: "-- Head.\n", want: []string{"file name"}},
		{name: "no comment at the head", sql: "\nselect 1;\n", want: []string{"head"}},
		{name: "a backslash that a setting reads", sql: "-- Head.\n\nselect 'a' ~ '\\d';\n", want: []string{"literal"}},
		{name: "a backslash that no setting reads", sql: "-- Head.\n\nselect 'a' ~ E'\\\\d';\n"},
		{name: "letters by the rules of the database", sql: "-- Head.\n\nselect upper(a.b) = 'SIZE';\n", want: []string{"letters"}},
		{name: "letters of ASCII", sql: "-- Head.\n\nselect upper(a.b collate \"C\") = 'SIZE';\n"},
		{name: "no newline at the end", sql: "-- Head.\nselect 1;", want: []string{"file end"}},
		{name: "a blank line at the end", sql: "-- Head.\n\n", want: []string{"file end"}},
		{name: "a file that is too long", sql: strings.Repeat("-- Head.\n", 401), want: []string{"file length"}},
		{name: "a line that is too long", sql: long, want: []string{"line length"}},
		{name: "tabs and trailing blanks", sql: "-- Head.\t\n-- More. \n", want: []string{"blanks", "blanks"}},
		{name: "upper case in a statement", sql: "-- Head.\nSELECT 1;\n", want: []string{"lower case"}},
		{name: "upper case in a body", sql: "-- Head.\n" + fn("parley._p_f", "PERFORM 1;"), want: []string{"lower case"}},
		{name: "a statement left open", sql: "-- Head.\nselect 1\n", want: []string{"semicolon"}},
		{name: "commas out of place", sql: "-- Head.\nselect a,b , c;\n", want: []string{"spacing", "spacing"}},
		{name: "a comma at the head of a line", sql: "-- Head.\nselect a\n  , b;\n", want: []string{"spacing"}},
		{name: "odd indentation", sql: "-- Head.\nselect\n   1;\n", want: []string{"indentation"}},
		{name: "a table without replica identity", sql: "-- Head.\ncreate table parley._p_t (a int);\ncomment on table parley._p_t is 'T.';\n", want: []string{"replica identity"}},
		{
			name: "a replica identity of another table",
			sql: "-- Head.\ncreate table parley._p_t (a int);\ncomment on table parley._p_t is 'T.';\n" +
				"alter table parley._p_u replica identity full;\n",
			want: []string{"replica identity"},
		},
		{
			name: "a replica identity of its own",
			sql: "-- Head.\ncreate table parley._p_t (a int);\ncomment on table parley._p_t is 'T.';\n" +
				"alter table parley._p_t replica identity full;\n",
		},
		{name: "a table outside of the schema", sql: "-- Head.\ncreate table _p_t (a int primary key);\ncomment on table _p_t is 'T.';\n", want: []string{"schema"}},
		{name: "a table with a public name", sql: "-- Head.\ncreate table parley.t (a int primary key);\ncomment on table parley.t is 'T.';\n", want: []string{"private name"}},
		{name: "a column that pg_upgrade refuses", sql: "-- Head.\ncreate table parley._p_t (a int primary key, f regprocedure);\ncomment on table parley._p_t is 'T.';\n", want: []string{"movable column"}},
		{name: "an array of what pg_upgrade refuses", sql: "-- Head.\ncreate table parley._p_t (a int primary key, f pg_catalog.regproc[]);\ncomment on table parley._p_t is 'T.';\n", want: []string{"movable column"}},
		{name: "the oid of a role", sql: "-- Head.\ncreate table parley._p_t (a int primary key, f regrole not null, g oid);\ncomment on table parley._p_t is 'T.';\n", want: []string{"movable column", "movable column"}},
		{name: "a domain that pg_upgrade refuses", sql: "-- Head.\ncreate domain parley.d as regnamespace;\ncomment on domain parley.d is 'D.';\n", want: []string{"movable column"}},
		{name: "an index with a public name", sql: "-- Head.\ncreate unique index t_a on parley._p_t (a);\n", want: []string{"private name"}},
		{name: "a view without comment", sql: "-- Head.\ncreate view parley.v as select 1 as a;\n", want: []string{"comment"}},
		{name: "a comment on something else", sql: "-- Head.\n" + strings.ReplaceAll(fn("parley.f", "null;"), "comment on function parley.f", "comment on function parley.g"), want: []string{"comment"}},
		{
			name: "an overload without a comment of its own",
			sql:  "-- Head.\n" + strings.SplitAfter(fn("parley.f", "null;"), "$$;\n")[0] + fn("parley.f", "perform 1;"),
			want: []string{"comment"},
		},
		{name: "no search_path", sql: "-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "set search_path = pg_catalog, pg_temp\n", "", 1), want: []string{"search path"}},
		{name: "a search_path with public", sql: "-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "pg_catalog,", "pg_catalog, public,", 1), want: []string{"search path"}},
		{name: "a search_path that leaves pg_temp first", sql: "-- Head.\n" + strings.Replace(fn("parley.f", "null;"), ", pg_temp", "", 1), want: []string{"search path"}},
		{
			name: "no sequential scans, and compiling left on",
			sql:  "-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "as $$", "set enable_seqscan = off\nas $$", 1), want: []string{"plans"},
		},
		{name: "a body of 81 lines", sql: "-- Head.\n" + fn("parley.f", strings.Repeat("null;\n  ", 78)+"null;"), want: []string{"body length"}},
		{name: "an exception for a body that is short", sql: "-- Head.\n" + fn("parley._p_take", "null;"), want: []string{"body length"}},
		{name: "an advisory lock", sql: "-- Head.\n" + fn("parley.f", "perform pg_try_advisory_xact_lock(1);"), want: []string{"advisory lock"}},
		{name: "an exception for an advisory lock that is not taken", sql: "-- Head.\n" + fn("parley._p_await_service", "null;"), want: []string{"advisory lock"}},
		{name: "no language", sql: "-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "language plpgsql\n", "", 1), want: []string{"language"}},
		{name: "a body in quotes", sql: "-- Head.\n" + strings.ReplaceAll(fn("parley.f", "null;"), "$$", "'"), want: []string{"body"}},
		{name: "a public trigger function", sql: "-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "returns void", "returns trigger", 1), want: []string{"private name"}},
		{name: "raise without a word on errors", sql: "-- Head.\n" + fn("parley.f", "raise exception 'no';"), want: []string{"errors"}},
		{
			name: "a raise two calls away without a word on errors",
			sql:  "-- Head.\n" + fn("parley.f", "perform parley._p_g();") + fn("parley._p_g", "perform parley._p_h();") + fn("parley._p_h", "raise 'no';"),
			want: []string{"errors"},
		},
		{name: "an insert by position", sql: "-- Head.\ninsert into parley._p_t values (1);\n", want: []string{"column list"}},
		{name: "an insert by position in a body", sql: "-- Head.\n" + fn("parley.f", "insert into parley._p_t as t select 1;"), want: []string{"column list"}},
		{
			name: "an insert by position out of other rows in a body",
			sql:  "-- Head.\n" + fn("parley.f", "insert into parley._p_t select r.*, 1 from unnest(v_rows) as r;"), want: []string{"column list"},
		},
		{
			name: "an insert of the rows of a function",
			sql:  "-- Head.\n" + fn("parley.f", "insert into parley._p_t select r.* from parley._p_g() as r;"), want: []string{"column list"},
		},
		{name: "all columns of a table", sql: "-- Head.\nselect * from parley._p_t;\n", want: []string{"select *"}},
		{name: "all columns of an alias", sql: "-- Head.\nselect t.*, 1 from only parley._p_t as t;\n", want: []string{"select *"}},
		{name: "all columns returned", sql: "-- Head.\ndelete from parley._p_t returning *;\n", want: []string{"select *"}},
		{name: "dynamic SQL by concatenation", sql: "-- Head.\n" + fn("parley.f", "execute 'drop table ' || quote_ident(x);"), want: []string{"dynamic SQL"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, v := range check(c.file, c.sql) {
				got = append(got, v.Rule)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q for\n%s", got, c.want, c.sql)
			}
		})
	}
}

func TestRulesAccept(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, sql string }{
		{"upper case in comments, strings and quoted names", "-- Head.\nselect 'A', \"B\" /* C */;\n"},
		{"an index that is called after its table", "-- Head.\ncreate index on parley._p_t (a);\n"},
		{
			"a whole row out of a function of its type",
			"-- Head.\n" + strings.Replace(fn("parley.f", "return query select v.* from parley.v;"), "returns void", "returns setof parley.v", 1),
		},
		{"a body of 80 lines", "-- Head.\n" + fn("parley.f", strings.Repeat("null;\n  ", 77)+"null;")},
		{"a star that is an operator", "-- Head.\nselect 1 operator(pg_catalog.*) 2;\n"},
		{"whole rows that a loop takes into a variable", "-- Head.\n" + fn("parley.f", "for v_row in select * from parley._p_t loop null; end loop;")},
		{"a whole row returned into a variable of its type", "-- Head.\n" + fn("parley.f", "delete from parley._p_t returning * into v_row;")},
		{"a notice, which is no error", "-- Head.\n" + fn("parley.f", "raise notice 'x';")},
		{"errors that are listed", "-- Head.\n" + strings.Replace(fn("parley.f", "raise 'x';"), "Does it.", "Does it.\nErrors: 8426.", 1)},
		{"all columns of a function", "-- Head.\nselect f.* from parley.f() as f;\n"},
		{"all columns of a common table expression", "-- Head.\nwith x as (select 1 as a) select * from x;\n"},
		{"all columns that a function gives", "-- Head.\n" + fn("parley.f", "delete from parley._p_t as t returning (parley._p_g(t.a)).*;")},
		{"all columns of a subquery", "-- Head.\nselect * from (select 1 as a) as x;\n"},
		{"a whole row into a variable of its type", "-- Head.\n" + fn("parley.f", "select * into v_row from parley._p_t;")},
		{"a multiplication and a count", "-- Head.\nselect a * b, count(*) from parley._p_t;\n"},
		{"an insert of nothing but defaults", "-- Head.\ninsert into parley._p_t default values;\n"},
		{"an insert of rows of the table's type", "-- Head.\n" + fn("parley.f", "insert into parley._p_t select r.* from unnest(v_rows) as r;")},
		{"dynamic SQL by format", "-- Head.\n" + fn("parley.f", "execute format('drop table %I', x) using y || z;")},
		{"the privilege execute", "-- Head.\nrevoke execute on function parley.f() from public;\n"},
		{
			"further settings of a function that pins its search_path",
			"-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "pg_temp\n", "pg_temp\nset plan_cache_mode = force_generic_plan\nset enable_seqscan = off\nset jit = off\n", 1),
		},
		{
			"further settings that stand before the search_path",
			"-- Head.\n" + strings.Replace(fn("parley.f", "null;"), "set search_path", "set jit = off\nset search_path", 1),
		},
		{"a function in standard form", "-- Head.\ncreate function parley._p_f() returns int\nlanguage sql\nbegin atomic\n  select case when true then 1 end;\n  select 2;\nend;\n\ncomment on function parley._p_f() is 'F.';\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range check("", c.sql) {
				t.Errorf("%v in\n%s", v, c.sql)
			}
		})
	}
}

// A system beside the broker has a schema of its own.
func TestRulesRefuseAPrivateObjectOfAnotherSchema(t *testing.T) {
	t.Parallel()
	wing := func(body string) string { return "-- Head.\n" + fn("parley_mail._p_take", body) }
	if found := check("store/work/leases.sql", "-- Head.\n"+fn("parley_store._p_lease", "perform parley_mail.maintain();")); len(found) != 1 {
		t.Errorf("a call that sql/wings does not allow: got %v, want one violation", found)
	}
	for body, want := range map[string]int{
		"perform parley.receive('q');":                     0,
		"perform parley_mail._p_take();":                   0,
		"insert into parley._p_message (position) select;": 1,
		"perform parley._p_append(1);":                     1,
	} {
		found := slices.DeleteFunc(check("mail/queues/take.sql", wing(body)), func(v sqlrules.Violation) bool { return v.Rule != "private object" })
		if len(found) != want {
			t.Errorf("%s: got %v, want %d violations", body, found, want)
		}
	}
}

func TestRulesRefuseACallOfALaterFolder(t *testing.T) {
	t.Parallel()
	low := sqlrules.Parse("parley/base/low.sql", "-- Head.\n"+fn("parley._p_low", "perform parley._p_high();"))
	same := sqlrules.Parse("parley/base/same.sql", "-- Head.\n"+fn("parley._p_same", "perform parley._p_low();"))
	high := sqlrules.Parse("parley/views/high.sql", "-- Head.\n"+fn("parley._p_high", "perform parley._p_low();"))
	found := sqlrules.Check([]sqlrules.File{low, same, high})
	if len(found) != 1 || found[0].File != "parley/base/low.sql" || found[0].Rule != "upward call" {
		t.Errorf("got %v, want one upward call of parley/base/low.sql", found)
	}
}

func TestRulesRefuseAColumnThatIsAddedLater(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"alter table parley._p_t add column c integer;":                                  1,
		"alter table parley._p_t add c integer;":                                         1,
		"alter table parley._p_t add constraint c check (true);":                         0,
		"alter table parley._p_t alter column c set storage external;":                   0,
		"alter table parley._p_t\nadd constraint c check (true),\nadd column d integer;": 1,
	} {
		found := slices.DeleteFunc(check("", "-- Head.\n"+text+"\n"), func(v sqlrules.Violation) bool { return v.Rule != "columns" })
		if len(found) != want {
			t.Errorf("%s: got %v, want %d violations", text, found, want)
		}
	}
}

func TestRulesWantCommentsOfAViewBesideIt(t *testing.T) {
	t.Parallel()
	const comment = "comment on column parley.seen.name is 'Its name.';\n"
	view := "-- Head.\ncreate view parley.seen as\nselect 'a' as name;\n\ncomment on view parley.seen is 'What is seen.';\n"
	isPlace := func(v sqlrules.Violation) bool { return v.Rule == "comment" }
	beside := sqlrules.Check([]sqlrules.File{sqlrules.Parse("parley/views/seen.sql", view+comment)})
	apart := sqlrules.Check([]sqlrules.File{
		sqlrules.Parse("parley/views/seen.sql", view), sqlrules.Parse("parley/views/columns.sql", "-- Head.\n"+comment),
	})
	if slices.ContainsFunc(beside, isPlace) || !slices.ContainsFunc(apart, isPlace) {
		t.Errorf("beside the view: %v; apart from it: %v", beside, apart)
	}
}

func TestRulesRefuseACommentThatNamesNoFile(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"base/test.sql": false, "parley/base/test.sql": false, "base/gone.sql": true, "parley/base/gone.sql": true,
	} {
		found := check("", "-- See "+name+".\n")
		if slices.ContainsFunc(found, func(v sqlrules.Violation) bool { return v.Rule == "named file" }) != want {
			t.Errorf("%s: got %v", name, found)
		}
	}
}

func TestKnotIsOfFilesThatUseEachOther(t *testing.T) {
	t.Parallel()
	uses := func(file, name, body string) sqlrules.File { return sqlrules.Parse(file, "-- Head.\n"+fn(name, body)) }
	got := sqlrules.Knot([]sqlrules.File{
		uses("parley/a/one.sql", "parley._p_one", "perform parley._p_two();"),
		uses("parley/a/two.sql", "parley._p_two", "perform parley._p_three();"),
		uses("parley/a/three.sql", "parley._p_three", "perform parley._p_one();"),
		uses("parley/a/above.sql", "parley._p_above", "perform parley._p_one();"),
		uses("parley/a/named.sql", "parley._p_named", "execute 'select parley._p_named_back()';"),
		uses("parley/a/back.sql", "parley._p_named_back", "perform parley._p_named();"),
	}, "parley")
	if want := []string{"parley/a/one.sql", "parley/a/three.sql", "parley/a/two.sql"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An exception that is not needed any more is struck from the list.
func TestRulesRefuseAnUnusedException(t *testing.T) {
	t.Parallel()
	found := sqlrules.Check([]sqlrules.File{sqlrules.Parse("parley/catalog/routes.sql", "-- Head.\n"+fn("parley._p_f", "null;"))})
	if len(found) == 0 || found[0].Rule != "upward call" {
		t.Errorf("got %v", found)
	}
}

func check(file, text string) []sqlrules.Violation {
	if file == "" {
		file = "parley/base/test.sql"
	}
	return sqlrules.Check([]sqlrules.File{sqlrules.Parse(file, text)})
}

func TestRulesRefuseTheKindOfADeliveryElsewhere(t *testing.T) {
	t.Parallel()
	kinds := sqlrules.Parse("mail/base/delivery_kinds.sql",
		"-- Head.\ninsert into parley_mail._p_delivery_kind (kind, system)\nvalues\n  ('DNS', 'mail'),\n  ('SMART_HOST', 'mail'), ('POISON', 'mail');\n")
	for body, want := range map[string]int{
		"perform 1 where lane like 'DNS/%';":                      1,
		"perform 1 where lane ~ '^(POISON|SMART_HOST)/';":         1,
		"perform 1 where kind = 'SMART_HOST';":                    1,
		"lane := format('DNS/%s/%s', a, b);":                      1,
		"kind := split_part(l.lane, '/', 1);":                     1,
		"kind := split_part(q.queue, '/', 1);":                    1,
		"perform 1 where lane = 'POISON/-/-';":                    0,
		"perform 'resume_queue(''POISON/-/-'') or a host of DNS'": 0,
		"perform 1 where lane like 'HIS_DNS/%';":                  0,
		"kind := split_part(w.lane, ' ', 1);":                     0,
		"name := split_part(address, '/', 1);":                    0,
	} {
		for file, allowed := range map[string]bool{"mail/queues/take.sql": false, "store/work/take.sql": true} {
			take := sqlrules.Parse(file, "-- Head.\n"+fn("parley_mail._p_take", body)+"\ncomment on view parley_mail.v is 'DNS/%';\n")
			found := slices.DeleteFunc(sqlrules.Check([]sqlrules.File{kinds, take}), func(v sqlrules.Violation) bool { return v.Rule != "kind of delivery" })
			if len(found) != want && !allowed || allowed && len(found) > 0 {
				t.Errorf("%s in %s: got %v, want %d violations", body, file, found, want)
			}
		}
	}
}
