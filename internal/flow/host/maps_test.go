package host_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) { os.Exit(mappingtest.Main(m, mapping.RunJQ)) }

// document is a part of definitions.
type document = map[string]any

func (e *engine) applyDocument(d document) {
	e.Helper()
	written, err := json.Marshal(d)
	if err != nil {
		e.Fatal(err)
	}
	e.apply(string(written))
}

// mapped defines message types and maps, and a location that splits arrays of JSON or takes XML.
func (e *engine) mapped(maps document, ofReceivePort, ofSendPort []string, pipeline string) {
	e.Helper()
	port := document{
		"application": "Orders", "host": "Send", "adapter": "FAKE", "address": "out", "retry_policy": "never", "maps": ofSendPort,
		"filter": []any{[]any{document{"property": "ReceivePortName", "operator": "=", "value": "In"}}},
	}
	e.applyDocument(document{
		"message type": document{
			"Order":       document{"application": "Orders", "format": "json", "promotions": document{"urn:p#Key": "/po"}},
			"Sale":        document{"application": "Orders", "format": "json", "promotions": document{"urn:p#Amount": "/total"}},
			"urn:s#Order": document{"application": "Orders", "promotions": document{"urn:p#Key": "/*[local-name()='Order' and namespace-uri()='urn:s']/*[local-name()='Key' and namespace-uri()='']"}},
			"urn:t#Sale":  document{"application": "Orders", "promotions": document{"urn:p#Amount": "/*[local-name()='Sale' and namespace-uri()='urn:t']/*[local-name()='Total' and namespace-uri()='']"}},
		},
		"map": maps,
		"pipeline": document{"Orders": document{"application": "Orders", "direction": "receive", "stages": document{"disassemble": []any{
			document{"component": "json-disassembler", "settings": document{"split": true, "type": "Order"}},
		}}}},
		"receive port":     document{"In": document{"application": "Orders", "maps": ofReceivePort}},
		"receive location": document{"Source": document{"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source", "pipeline": pipeline}},
		"send port":        document{"Out": port},
	})
}

func ofJQ(program, source, target string) document {
	return document{
		"application": "Orders", "language": "jq", "source": source, "target": target,
		"program": document{"file": "m.jq", "documents": document{"m.jq": program}},
	}
}

func (e *engine) serveMaps(xslt string) {
	e.Helper()
	e.serve(func(c *host.Config) { c.Maps = mapping.PoolConfig{XSLT: xslt, JQ: mappingtest.JQ(e.T), Workers: 1} })
}

// A message goes through the map for its type behind the pipeline. A message that the map refuses costs itself alone, and goes through the
// map again when it is resubmitted.
func TestAReceivePortMapsMessagesByTheirType(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.mapped(document{"Sell": ofJQ(`{total: (.price * 2)}`, "Order", "Sale")}, []string{"Sell"}, nil, "Orders")
	e.serveMaps("")
	e.take(`[{"po": "A", "price": 3}, {"po": "C", "price": {}}, {"po": "D", "price": 4}]`)
	parleytest.Until(t, "what can be mapped is sent", func() bool { return len(e.sentBy("Out")) >= 2 })
	if got := strings.Join(e.sentBy("Out"), " "); !strings.Contains(got, `{"total":6}`) || !strings.Contains(got, `{"total":8}`) {
		t.Errorf("sent are %s", got)
	}
	sqltest.Equal(e.Session, "receive.map", `select min(code) from parley_flow._p_suspended`)
	var code, text, body string
	var suspension int64
	if err := e.DB.QueryRow(t.Context(), `select suspension_id, code, error, convert_from(parley_flow.read_message(message_id), 'UTF8')
		from parley_flow.suspended order by suspension_id desc limit 1`).Scan(&suspension, &code, &text, &body); err != nil {
		t.Fatal(err)
	}
	if code != "receive.map" || !strings.Contains(text, "map Sell") || !strings.Contains(body, `"po": "C"`) {
		t.Errorf("suspended is %s with %q: %s", code, text, body)
	}
	e.Exec(`select parley_flow.resubmit($1, convert_to('{"po": "C", "price": 5}', 'UTF8'))`, suspension)
	e.untilSent(3)
	if got := e.sentBy("Out")[2]; got != `{"total":10}` {
		t.Errorf("the mended message became %s", got)
	}
}

// The type of the result is that of the target, its promotions are its own, and those of the old body are gone.
func TestAMappedMessageIsPromotedAnew(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.mapped(document{"Sell": ofJQ(`{total: 5}`, "Order", "Sale")}, []string{"Sell"}, nil, "Orders")
	e.Exec("select parley_flow.stop('Out')")
	e.serveMaps("")
	e.take(`{"po": "A"}`)
	var kind, promoted, written string
	if err := e.DB.QueryRow(t.Context(), `select message_type, promoted::text, written::text from parley_flow._p_message`).
		Scan(&kind, &promoted, &written); err != nil {
		t.Fatal(err)
	}
	if kind != "Sale" || !strings.Contains(promoted, `"urn:p#Amount"`) || strings.Contains(promoted, "urn:p#Key") ||
		!strings.Contains(written, `"urn:parley:pipeline#Map": "Sell"`) {
		t.Errorf("type %s, promoted %s, written %s", kind, promoted, written)
	}
}

// A result is in the form of its target: a stylesheet writes JSON as text, and it has the properties of its type. Another form is refused.
func TestAMappedMessageIsInTheFormOfItsTarget(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	sheet := `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>
<xsl:template match="/">{"total": <xsl:value-of select="//Key"/>}</xsl:template></xsl:stylesheet>`
	e.mapped(document{"Sell": document{
		"application": "Orders", "language": "xslt", "source": "urn:s#Order", "target": "Sale",
		"program": document{"file": "m.xsl", "documents": document{"m.xsl": sheet}},
	}}, []string{"Sell"}, nil, "XMLReceive")
	e.Exec("select parley_flow.stop('Out')")
	e.serveMaps(mappingtest.Worker(t))
	e.take(`<o:Order xmlns:o="urn:s"><Key>7</Key></o:Order>`)
	var kind, promoted string
	if err := e.DB.QueryRow(t.Context(), `select message_type, promoted::text from parley_flow._p_message`).Scan(&kind, &promoted); err != nil {
		t.Fatal(err)
	}
	if kind != "Sale" || !strings.Contains(promoted, `"urn:p#Amount": "7"`) {
		t.Errorf("type %s, promoted %s", kind, promoted)
	}
	e.take(`<o:Order xmlns:o="urn:s"><Key>x</Key></o:Order>`)
	if got := e.suspended(); len(got) != 1 || !strings.Contains(got[0], "the map has made no JSON, as messages of its target Sale are") {
		t.Errorf("suspended are %q", got)
	}
}

const sellSheet = `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:s="urn:s" exclude-result-prefixes="s">
<xsl:output omit-xml-declaration="yes"/>
<xsl:template match="/"><xsl:if test="//Key = 'bad'"><xsl:message terminate="yes">a bad key</xsl:message></xsl:if>
<t:Sale xmlns:t="urn:t"><Total><xsl:value-of select="/s:Order/Key"/></Total></t:Sale></xsl:template></xsl:stylesheet>`

// A send port maps what it sends; the message in the box stays as it was published.
func TestASendPortMapsWhatItSends(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.mapped(document{"Sell": document{
		"application": "Orders", "language": "xslt", "source": "urn:s#Order", "target": "urn:t#Sale",
		"program": document{"file": "m.xsl", "documents": document{"m.xsl": sellSheet}},
	}}, nil, []string{"Sell"}, "XMLReceive")
	var kind, amount string
	record := e.record("Out")
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		e.mu.Lock()
		kind, amount = messages[0].Type, messages[0].Promoted["urn:p#Amount"]
		e.mu.Unlock()
		return record(ctx, messages)
	})
	e.serveMaps(mappingtest.Worker(t))
	e.take(`<o:Order xmlns:o="urn:s"><Key>7</Key></o:Order>`)
	if got := strings.TrimSpace(e.untilSent(1)[0]); got != `<t:Sale xmlns:t="urn:t"><Total>7</Total></t:Sale>` {
		t.Errorf("sent is %s", got)
	}
	e.mu.Lock()
	if kind != "urn:t#Sale" || amount != "7" {
		t.Errorf("the adapter got type %s and amount %s", kind, amount)
	}
	e.mu.Unlock()
	e.take(`<o:Order xmlns:o="urn:s"><Key>bad</Key></o:Order>`)
	parleytest.Until(t, "the bad one is suspended", func() bool { _, suspended := e.inBox(); return suspended == 1 })
	var code, text, published string
	if err := e.DB.QueryRow(t.Context(), `select code, error, message_type from parley_flow.suspended`).Scan(&code, &text, &published); err != nil {
		t.Fatal(err)
	}
	if code != "send.map" || !strings.Contains(text, "m.xsl: line 3") || !strings.Contains(text, "a bad key") || published != "urn:s#Order" {
		t.Errorf("suspended is %s with %q, a message of type %s", code, text, published)
	}
}

// A function of the database maps with the rights of the host's role, in the transaction that publishes, and reads alone.
func TestAFunctionOfTheDatabaseMaps(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec(`create schema app; create table app.customers (email text, number integer); insert into app.customers values ('a@x', 7)`)
	e.Exec(`create function app.sell(body jsonb) returns jsonb language plpgsql as $$
		begin
			if body ? 'write' then delete from app.customers; end if;
			return (select jsonb_build_object('total', c.number, 'by', current_user) from app.customers as c where c.email = body ->> 'email');
		end $$`)
	e.mapped(document{"Sell": document{
		"application": "Orders", "language": "sql", "function": "app.sell", "source": "Order", "target": "Sale",
	}}, []string{"Sell"}, nil, "Orders")
	e.serveMaps("")
	in := e.intake("Source")
	refused := func(body, part string) {
		t.Helper()
		before := e.suspended()
		if _, err := in.Take(t.Context(), []adapter.Input{{Body: []byte(body)}}); err != nil {
			t.Fatal(err)
		}
		after := e.suspended()
		if len(after) != len(before)+1 || !strings.Contains(after[len(after)-1], part) {
			t.Errorf("%s: suspended are %q, and should have %q at the end", body, after, part)
		}
	}
	refused(`{"email": "a@x"}`, "permission denied")
	e.Exec("grant usage on schema app to public; grant select, delete on app.customers to public")
	e.take(`{"email": "a@x"}`)
	if got := e.untilSent(1)[0]; !strings.Contains(got, `"total": 7`) || !strings.Contains(got, e.receive) {
		t.Errorf("sent is %s", got)
	}
	refused(`{"email": "nobody"}`, "gave null")
	refused(`{"email": "a@x", "write": true}`, "read-only")
	sqltest.Equal(e.Session, 1, "select count(*)::integer from app.customers")
}

// suspended gives the errors of what is suspended, in their order.
func (e *engine) suspended() (errors []string) {
	e.Helper()
	if err := e.DB.QueryRow(e.Context(), `select coalesce(array_agg(error order by suspension_id), '{}') from parley_flow.suspended`).
		Scan(&errors); err != nil {
		e.Fatal(err)
	}
	return errors
}

// A node without a program for stylesheets leaves the port out, says so, and serves everything else.
func TestAPortWhoseMapCannotRunIsLeftOut(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.mapped(document{"Sell": document{
		"application": "Orders", "language": "xslt", "source": "urn:s#Order", "target": "urn:t#Sale",
		"program": document{"file": "m.xsl", "documents": document{"m.xsl": sellSheet}},
	}}, nil, []string{"Sell"}, "XMLReceive")
	e.port("Other", `{}`)
	e.serveMaps("/nonexistent/parley-xslt")
	e.take(`<o:Order xmlns:o="urn:s"><Key>7</Key></o:Order>`)
	parleytest.Until(t, "the other port sends", func() bool { return len(e.sentBy("Other")) == 1 })
	parleytest.Until(t, "the port is reported", func() bool {
		var found bool
		err := e.DB.QueryRow(t.Context(), `select exists (select from parley_flow._p_host_instance where report::text like '%parley-xslt%')`).Scan(&found)
		return err == nil && found
	})
	if sent := e.sentBy("Out"); len(sent) > 0 {
		t.Errorf("sent is %v", sent)
	}
}
