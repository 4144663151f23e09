package xquery

import (
	"strconv"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

const order = `<o:Order xmlns:o="urn:order" Id="7"><Item Sku="a">1</Item><Item Sku="b">2.5</Item><Note>x &amp; y</Note><Empty/></o:Order>`

func TestQueriesFindWhatTheServerFinds(t *testing.T) {
	t.Parallel()
	const prolog = `declare namespace n="urn:order"; `
	for _, c := range []struct{ method, document, query, want string }{
		{"value", order, prolog + "(/n:Order/Item)[1]", "1"},
		{"value", order, prolog + "(/n:Order/Item/@Sku)[2]", "b"},
		{"value", order, prolog + "/n:Order[1]/@Id", "7"},
		{"value", order, prolog + "(/n:Order/Item[@Sku=\"b\"]/text())[1]", "2.5"},
		{"value", order, prolog + "sum(/n:Order/Item)", "3.5"},
		{"value", order, prolog + "count(//Item)", "2"},
		{"value", order, "(/*:Order/Item)[2]", "2.5"},
		{"value", order, "(/*/Note)[1]", "x & y"},
		{"value", order, "(/Order/Item)[1]", "none"},
		{"value", order, "local-name(/*[1])", "Order"},
		{"value", order, "(//Item[. eq sql:variable(\"@v\")]/@Sku)[1]", "a"},
		{"value", order, "string((//Item)[2])", "2.5"},
		{"value", order, "data((//Item)[2])", "2.5"},
		{"value", order, "/n:Order[1]", "2229 XQuery [value()]: The name \"n\" does not denote a namespace."},
		{"value", order, "//Item", "2389 XQuery [value()]: 'value()' requires a singleton (or empty sequence), found operand of type 'xdt:untypedAtomic *'"},
		{"value", order, prolog + "/n:Order[1]/Item", "2389 XQuery [value()]: 'value()' requires a singleton (or empty sequence), found operand of type 'xdt:untypedAtomic *'"},
		{"value", `<a xmlns="urn:a"><b>1</b></a>`, `declare default element namespace "urn:a"; (/a/b)[1]`, "1"},
		{"value", `<a xmlns="urn:a"><b>1</b></a>`, "declare\nnamespace\n\tx = 'urn:a' ;\n(/x:a/x:b)[1]", "1"},
		{"value", `<a xmlns="urn:a"><b>1</b></a>`, "(/a/b)[1]", "none"},
		{"value", `<a>1</a><a>2</a>`, "(/a)[2]", "2"},
		{"query", order, "//Item[1]", `<Item Sku="a">1</Item>`},
		{"query", order, prolog + "/n:Order/Empty", "<Empty/>"},
		{"query", `<p:a xmlns:p="urn:p"><p:b/></p:a>`, "//*:b", `<p:b xmlns:p="urn:p"/>`},
		{"query", order, "//Note", "<Note>x &amp; y</Note>"},
		{"query", order, "for $i in //Item return $i", "40517 'XQuery for' is not supported by Parley."},
		{"query", order, "<a>{//Item}</a>", "40517 'XQuery constructors' is not supported by Parley."},
		{"exist", order, "//Item[@Sku='b']", "true"},
		{"exist", order, "//Item[@Sku='c']", "false"},
		{"exist", order, "//Item[", "2209 XQuery [exist()]: Syntax error near '// Item['"},
	} {
		if got := asked(t, c.method, c.document, c.query); got != c.want {
			t.Errorf(".%s(%s)\n got %s\nwant %s", c.method, c.query, got, c.want)
		}
	}
}

func asked(t *testing.T, method, document, written string) string {
	t.Helper()
	root, err := Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Compile(method, written, nil)
	if err != nil {
		return strconv.Itoa(err.Number) + " " + err.Message
	}
	variables := func(string) (string, *fault.Error) { return "1", nil }
	var text string
	switch method {
	case "value":
		var found bool
		if text, found, err = q.Value(root, variables); !found && err == nil {
			text = "none"
		}
	case "query":
		text, err = q.XML(root, variables)
	default:
		var found bool
		found, err = q.Exists(root, variables)
		text = map[bool]string{true: "true", false: "false"}[found]
	}
	if err != nil {
		return err.Message
	}
	return text
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"(/a/b)[1]", "declare namespace n=\"u\"; //n:a[@x=1]", "sql:variable(\"@v\") + 1", "data(.)", "((", "a[b[c]]"} {
		f.Add(seed)
	}
	root, err := Parse(order)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, written string) {
		for _, method := range []string{"value", "query", "exist"} {
			if q, err := Compile(method, written, nil); err == nil {
				_, _, _ = q.Evaluate(root, func(string) (string, *fault.Error) { return "'x'", nil })
			}
		}
	})
}
