package parts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/parts"
)

const order = "<?xml version='1.0'?>\n<!-- kept -->\n" +
	"<o:Order xmlns:o='urn:o' xmlns='urn:d' no = \"1\"  o:no='2'>\n  <Line sku='a'>x &amp; y</Line>\n" +
	"  <Line sku=\"b\"/><o:Empty></o:Empty><![CDATA[<t>]]></o:Order>\n"

const list = `{ "order" : {"id":"7", "total": 12.50, "lines": [ {"sku":"a"}, {"sku":"b"} ], "note":null, "rush": true } }`

func path(t *testing.T, written string) *parts.Path {
	t.Helper()
	p, err := parts.Compile(written, map[string]string{"p": "urn:o"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, body string) *parts.Document {
	t.Helper()
	d, err := parts.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPathsLeadToPartsOfXMLAndJSONAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, path, want string }{
		{order, "/Order/Line[1]", "x & y"},
		{order, "/p:Order/@no", "1"},
		{order, "/Order/@p:no", "2"},
		{order, "//Line/@sku", "a|b"},
		{order, "//Line[@sku='b']", ""},
		{order, "/*[local-name()='Order' and namespace-uri()='urn:o']/*[local-name()='Line' and namespace-uri()='urn:d'][1]", "x & y"},
		{list, "/order/total", "12.50"},
		{list, "/order/lines/item[2]/sku", "b"},
		{list, "//sku", "a|b"},
		{list, "/order/note", ""},
		{list, "/order/rush", "true"},
		{`[{"a":1},2]`, "/item[1]/a", "1"},
	} {
		steps := 1000
		found, _, err := parse(t, c.body).Root().Find(path(t, c.path), &steps)
		var texts []string
		for _, part := range found {
			texts = append(texts, part.Text())
		}
		if got := strings.Join(texts, "|"); got != c.want || err != nil || len(found) == 0 {
			t.Errorf("%s gives %q of %d, %v; want %q", c.path, got, len(found), err, c.want)
		}
	}
	steps := 1000
	if _, value, err := parse(t, order).Root().Find(path(t, "count(//Line)"), &steps); value != 2.0 || err != nil {
		t.Errorf("count is %v, %v", value, err)
	}
}

// A part that is set changes, and not a byte beside it.
func TestSetChangesNothingElse(t *testing.T) {
	t.Parallel()
	text := parts.Value{Text: "<&\"", JSON: []byte(`"<&\""`)}
	for _, c := range []struct {
		body, path string
		value      parts.Value
		old, want  string
	}{
		{order, "/Order/Line[1]", text, "x &amp; y", "&lt;&amp;&quot;"},
		{order, "/Order/Line[2]", text, `<Line sku="b"/>`, `<Line sku="b">&lt;&amp;&quot;</Line>`},
		{order, "/Order/Empty", parts.Value{Fragment: []byte("<a/>")}, "<o:Empty></o:Empty>", "<o:Empty><a/></o:Empty>"},
		{order, "/Order/@no", text, `no = "1"`, `no = "&lt;&amp;&quot;"`},
		{order, "/Order/@p:no", text, `o:no='2'`, `o:no='&lt;&amp;&quot;'`},
		{order, "/Order/@p:no", parts.Value{IsRemoval: true}, `  o:no='2'`, ""},
		{order, "/Order/Line[1]", parts.Value{IsRemoval: true}, "<Line sku='a'>x &amp; y</Line>", ""},
		{order, "/Order/New", text, "]]></o:Order>", "]]><o:New>&lt;&amp;&quot;</o:New></o:Order>"},
		{order, "/Order/@new", text, "<o:Order", `<o:Order new="&lt;&amp;&quot;"`},
		{list, "/order/total", text, "12.50", `"<&\""`},
		{list, "/order/lines/item[1]", parts.Value{IsRemoval: true}, `{"sku":"a"}, `, ""},
		{list, "/order/rush", parts.Value{IsRemoval: true}, `, "rush": true`, ""},
		{list, "/order/new", text, `true }`, `true,"new":"<&\"" }`},
		{list, "/order/note", parts.Value{JSON: []byte("1")}, `"note":null`, `"note":1`},
		{`{"a":{}}`, "/a/b", text, `{}`, `{"b":"<&\""}`},
	} {
		steps := 1000
		got, err := parse(t, c.body).Set(path(t, c.path), c.value, &steps)
		if want := strings.Replace(c.body, c.old, c.want, 1); string(got) != want || err != nil {
			t.Errorf("%s gives %s, %v\nwant %s", c.path, got, err, want)
		}
	}
}

func TestFragmentsKeepTheirNamespaces(t *testing.T) {
	t.Parallel()
	steps := 1000
	found, _, err := parse(t, "<o:a xmlns:o='urn:o' xmlns:q='urn:q' xmlns='urn:d'><o:b x='1'><c/></o:b></o:a>").Root().Find(path(t,
		"//b"), &steps)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	again := parse(t, string(found[0].Fragment()))
	steps = 1000
	inner, _, err := again.Root().Find(path(t, "/p:b[namespace-uri()='urn:o']/*[namespace-uri()='urn:d']"), &steps)
	if err != nil || len(inner) != 1 || bytes.Contains(found[0].Fragment(), []byte("urn:q")) {
		t.Errorf("%s: %v", found[0].Fragment(), err)
	}
}

func TestPathsThatCostTooMuchAndBadOnesAreErrors(t *testing.T) {
	t.Parallel()
	wide := "<a>" + strings.Repeat("<b><c/></b>", 2000) + "</a>"
	steps := 100000
	if _, _, err := parse(t, wide).Root().Find(path(t, "//*[count(//*) > count(//b)]"), &steps); !errors.Is(err, parts.ErrCost) {
		t.Errorf("the cost is %v", err)
	}
	for _, bad := range []string{"", "/a[", "/x:a", "$v", "//", "a b", strings.Repeat("/a", 2000)} {
		if _, err := parts.Compile(bad, nil); err == nil {
			t.Errorf("path %.20q is taken", bad)
		}
	}
	for _, bad := range []string{"", "<a>", "{", `{"a":1} 2`, "\xff", "<a/><b/>", strings.Repeat("[", 300) + strings.Repeat("]", 300), "<!DOCTYPE a><a/>"} {
		if _, err := parts.Parse([]byte(bad)); err == nil {
			t.Errorf("body %.20q is taken", bad)
		}
	}
}

// Any body and path end in an answer or an error, and what was set can be read again.
func FuzzSet(f *testing.F) {
	f.Add([]byte(order), "/Order/Line[1]")
	f.Add([]byte(order), "/Order/@no")
	f.Add([]byte(list), "/order/lines/item[2]/sku")
	f.Add([]byte(`[1,[],{}]`), "/item/new")
	f.Fuzz(func(t *testing.T, body []byte, written string) {
		d, err := parts.Parse(body)
		if err != nil {
			return
		}
		p, err := parts.Compile(written, map[string]string{"p": "urn:o"})
		if err != nil {
			return
		}
		steps := 10000
		changed, err := d.Set(p, parts.Value{Text: "v", JSON: []byte(`"v"`)}, &steps)
		if err != nil {
			return
		}
		if _, err := parts.Parse(changed); err != nil {
			t.Fatalf("%q at %s gives %q: %v", body, written, changed, err)
		}
		if d.IsJSON() && !json.Valid(changed) {
			t.Fatalf("%q at %s gives %q", body, written, changed)
		}
	})
}
