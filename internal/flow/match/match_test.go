package match_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/parleytest"
)

// types are those of the properties of the tests; a name is its type.
var types = []string{"text", "integer", "number", "boolean", "timestamp"}

// texts are values as they come: canonical, written otherwise, and of another type.
var texts = map[string][]string{
	"text":    {"", "a", "A", "ab", "ä", "10", "9", "true", "a b"},
	"integer": {"1", "01", "-0", "+7", "7", "12", "1e2", "100", "x", "9223372036854775807", "123456789012345678", "-3", "1.5", " 10 ", "1 0"},
	"number":  {"1", "1.0", "1.50", "-1.5", ".5", "5.", "1e-2", "0.01", "1E+2", "100", "0", "-0.00", "abc", "1e999", "12345678901234567890.123"},
	"boolean": {"true", "TRUE", "1", "0", "false", "False", "yes", "falſe", "\ttrue\n"},
	"timestamp": {
		"2026-11-28T08:30:00Z", "2026-11-28 09:30:00.000+01:00", "2026-11-28T08:30Z", "2026-11-28T08:30:00.000001Z", "2026-02-30T00:00:00Z",
		" 2026-11-28T08:30:00Z\n", "2026-11-28T09:30:00.1234567+01:00", "2026-11-28+01:00", "2026-11-28Z", "2026-11-28", "2026-13-28Z", "0000-11-28Z",
		"2026-11-28T08:30:00", "1000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2025-12-31T23:59:59.999999-0030", "today",
	},
}

const namespace = "urn:p"

func property(of string) string { return namespace + "#" + of }

type predicate struct {
	Property string `json:"property"`
	Operator string `json:"operator"`
	Value    any    `json:"value,omitempty"`
}

func drawPredicate(r *rapid.T) predicate {
	of := rapid.SampledFrom(types).Draw(r, "type")
	operator := rapid.SampledFrom([]string{"=", "=", "=", "<>", "exists", "<", "<=", ">", ">=", "&", "in", "prefix"}).Draw(r, "operator")
	value := rapid.SampledFrom(texts[of])
	p := predicate{Property: property(of), Operator: operator}
	if operator == "&" && of != "integer" && of != "number" {
		operator, p.Operator = "exists", "exists" // it has no bits
	}
	switch operator {
	case "exists":
	case "in":
		p.Value = rapid.SliceOfN(value, 1, 3).Draw(r, "values")
	case "&":
		p.Value = rapid.IntRange(-8, 8).Draw(r, "bits")
	case "<", "<=", ">", ">=":
		ordered := map[string][]string{
			"text": texts["text"], "boolean": texts["boolean"], "integer": {"1", "7", "-3", "100"}, "number": {"1", "1.5", "0.01", "-2"},
			"timestamp": {"2026-11-28T08:30:00Z", "2025-12-31T23:59:59.999999-00:30"},
		}
		p.Value = rapid.SampledFrom(ordered[of]).Draw(r, "bound")
	default:
		p.Value = value.Draw(r, "value")
	}
	return p
}

// install gives a database with the properties and a host.
func install(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db := parleytest.Database(t)
	properties := map[string]any{}
	for _, of := range types {
		properties[of] = map[string]string{"type": of}
	}
	apply(t, db, map[string]any{
		"application":     map[string]any{"A": map[string]any{}},
		"host":            map[string]any{"H": map[string]any{"role": "pg_monitor"}},
		"property schema": map[string]any{namespace: map[string]any{"application": "A", "properties": properties}},
	})
	return db
}

type failer interface {
	Helper()
	Fatalf(format string, arguments ...any)
}

func apply(t failer, db *pgxpool.Pool, definitions map[string]any) {
	t.Helper()
	document, err := json.Marshal(definitions)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if _, err := db.Exec(context.Background(), "select parley_flow.apply($1::jsonb)", document); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
}

// The matcher finds the ports that the database finds, for any filters and messages.
func TestMatcherFindsWhatTheDatabaseFinds(t *testing.T) {
	t.Parallel()
	db := install(t)
	rapid.Check(t, func(r *rapid.T) {
		ports := map[string]any{}
		for n := range rapid.IntRange(1, 5).Draw(r, "ports") {
			var filter [][]predicate
			for range rapid.IntRange(1, 3).Draw(r, "groups") {
				var group []predicate
				for range rapid.IntRange(1, 3).Draw(r, "predicates") {
					group = append(group, drawPredicate(r))
				}
				if rapid.IntRange(0, 20).Draw(r, "all") == 0 {
					group = append(group, predicate{Property: "MessageID", Operator: "exists"})
				}
				filter = append(filter, group)
			}
			ports[fmt.Sprint("P", n)] = map[string]any{"application": "A", "host": "H", "adapter": "X", "address": "x", "filter": filter}
		}
		apply(r, db, map[string]any{"send port": ports})
		var configuration struct {
			Epoch  int64
			Groups []match.Group
		}
		var document []byte
		if err := db.QueryRow(context.Background(), "select parley_flow._p_configuration('H')").Scan(&document); err != nil {
			r.Fatal(err)
		}
		if err := json.Unmarshal(document, &configuration); err != nil {
			r.Fatal(err)
		}
		matcher := match.New(configuration.Epoch, configuration.Groups)
		for range 8 {
			promoted := map[string]string{}
			for _, of := range types {
				if rapid.Bool().Draw(r, "has") {
					promoted[property(of)] = rapid.SampledFrom(texts[of]).Draw(r, of)
				}
			}
			var want []int64
			if err := db.QueryRow(context.Background(), "select coalesce(array_agg(m.send_port_id order by m.send_port_id), '{}')::bigint[] from parley_flow._p_match(array[$1::jsonb]) as m",
				promoted).Scan(&want); err != nil {
				r.Fatal(err)
			}
			if got := matcher.Match(promoted); !slices.Equal(got, want) {
				r.Fatalf("message %q: the matcher finds %v, the database %v; filters %s", promoted, got, want, document)
			}
		}
	})
}

// Both write each value in the same way.
func TestCanonicalTextsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := parleytest.Database(t)
	check := func(t failer, value, of string) {
		t.Helper()
		var want string
		if err := db.QueryRow(context.Background(), "select parley_flow._p_canonical($1, $2)", value, of).Scan(&want); err != nil {
			t.Fatalf("%q as %s: %v", value, of, err)
		}
		if got := match.Canonical(value, of); got != want {
			t.Fatalf("%q as %s is %q, in the database %q", value, of, got, want)
		}
	}
	for _, of := range types {
		for _, from := range types {
			for _, value := range texts[from] {
				check(t, value, of)
			}
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.StringMatching(`[-+]?[0-9]{0,6}([.][0-9]{0,5})?([eE][-+]?[0-9]{1,2})?`).Draw(r, "number")
		check(r, number, "number")
		check(r, rapid.StringMatching(`[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[-+][01][0-9]:?[0-5][0-9])`).Draw(r, "time"), "timestamp")
	})
}

func TestTimesWithAnOffsetAreOnesOfUTC(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"2026-11-28T09:30:00+01:00": "2026-11-28T08:30:00.000000Z", "2026-11-28T09:30:00.1234567+01:00": "2026-11-28T08:30:00.123456Z",
		"\n2026-11-28T08:30:00Z ": "2026-11-28T08:30:00.000000Z", "2026-11-28+01:00": "2026-11-27T23:00:00.000000Z", "2026-11-28Z": "2026-11-28T00:00:00.000000Z",
		"2026-11-28": "2026-11-28", "2026-11-28T08:30:00": "2026-11-28T08:30:00", "2026-11-31Z": "2026-11-31Z",
	} {
		if got := match.Canonical(value, "timestamp"); got != want {
			t.Errorf("%q is %q and not %q", value, got, want)
		}
	}
}

// One match among ten thousand subscriptions is found as one among ten.
func BenchmarkMatch(b *testing.B) {
	for _, ports := range []int64{10, 10000} {
		var groups []match.Group
		for n := range ports {
			groups = append(groups, match.Group{SendPort: n, Predicates: []match.Predicate{
				{Property: "MessageType", Type: "text", Operator: "=", Value: "urn:s#Order"},
				{Property: "urn:p#Key", Type: "text", Operator: "=", Value: fmt.Sprint(n)},
			}})
		}
		m := match.New(1, groups)
		message := map[string]string{"MessageType": "urn:s#Order", "urn:p#Key": "7"}
		b.Run(fmt.Sprint(ports), func(b *testing.B) {
			for b.Loop() {
				if len(m.Match(message)) != 1 {
					b.Fatal("nothing matched")
				}
			}
		})
	}
}
