package mapping_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
)

func TestMain(m *testing.M) { os.Exit(mappingtest.Main(m, mapping.RunJQ)) }

// sheet is a stylesheet with the namespaces that compiled maps have.
func sheet(body string) string {
	return `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
  xmlns:msxsl="urn:schemas-microsoft-com:xslt" xmlns:userCSharp="http://schemas.microsoft.com/BizTalk/2003/userCSharp"
  xmlns:o="urn:shop" exclude-result-prefixes="o msxsl userCSharp">
  <xsl:output omit-xml-declaration="yes"/>
` + body + "\n</xsl:stylesheet>\n"
}

// poolOf gives a pool with workers for both languages.
func poolOf(t testing.TB) *mapping.Pool {
	t.Helper()
	return newPool(t, mapping.PoolConfig{XSLT: mappingtest.Worker(t), Workers: 2})
}

func newPool(t testing.TB, config mapping.PoolConfig) *mapping.Pool {
	t.Helper()
	config.JQ = mappingtest.JQ(t)
	p := mapping.NewPool(config)
	t.Cleanup(p.Close)
	return p
}

type settings map[string]any

// mapsOf makes maps of one map called M.
func mapsOf(t testing.TB, pool *mapping.Pool, language, file, text string, more settings) *mapping.Maps {
	t.Helper()
	d := settings{"language": language, "program": settings{"file": file, "documents": settings{file: text}}}
	maps.Copy(d, more)
	written, err := json.Marshal(settings{"M": d})
	if err != nil {
		t.Fatal(err)
	}
	made, err := mapping.New(written, pool)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func input(body string) mapping.Input {
	return mapping.Input{Size: int64(len(body)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(body)), nil
	}}
}

// run maps a body, or fails the test.
func run(t *testing.T, maps *mapping.Maps, bodies ...string) string {
	t.Helper()
	body, err := try(t, maps, bodies...)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func try(t *testing.T, maps *mapping.Maps, bodies ...string) (string, error) {
	t.Helper()
	inputs := make([]mapping.Input, len(bodies))
	for i, body := range bodies {
		inputs[i] = input(body)
	}
	out, err := maps.Run(t.Context(), "M", inputs)
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	body, err := out.Body.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body)), nil
}

// refused maps a body, which has to be refused, and gives the fault.
func refused(t *testing.T, maps *mapping.Maps, bodies ...string) *fault.Fault {
	t.Helper()
	body, err := try(t, maps, bodies...)
	f, is := fault.Of(err)
	if !is {
		t.Fatalf("it made %.200q with error %v, and should have been refused with a fault", body, err)
	}
	return f
}

const order = `<Order xmlns="urn:shop"><Po>7</Po><Line qty="2">Pen</Line><Line qty="x">Ink</Line></Order>`

func TestAMapGivesWhatItsStylesheetSays(t *testing.T) {
	t.Parallel()
	maps := mapsOf(t, poolOf(t), "xslt", "m.xsl", sheet(`<xsl:template match="/">
  <Invoice no="{/o:Order/o:Po}"><xsl:for-each select="/o:Order/o:Line"><Item><xsl:value-of select="."/></Item></xsl:for-each></Invoice>
</xsl:template>`), nil)
	for range 3 {
		if got := run(t, maps, order); got != `<Invoice no="7"><Item>Pen</Item><Item>Ink</Item></Invoice>` {
			t.Errorf("it made %s", got)
		}
	}
}

func TestSeveralInputsAreOneDocument(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	maps := mapsOf(t, pool, "xslt", "m.xsl", `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
  xmlns:s="http://schemas.microsoft.com/BizTalk/2003/aggschema" exclude-result-prefixes="s"><xsl:output omit-xml-declaration="yes"/>
<xsl:template match="/"><R><xsl:value-of select="/s:Root/InputMessagePart_0/A"/>-<xsl:value-of select="/s:Root/InputMessagePart_1/B"/></R>
</xsl:template></xsl:stylesheet>`, nil)
	if got := run(t, maps, "<A>1</A>", `<?xml version="1.0"?><B>2</B>`); got != "<R>1-2</R>" {
		t.Errorf("it made %s", got)
	}
	jq := mapsOf(t, pool, "jq", "m.jq", ".[0].a + .[1].a", nil)
	if got := run(t, jq, `{"a": 1}`, `{"a": 2}`); got != "3" {
		t.Errorf("it made %s", got)
	}
}

func TestAFaultHasTheLineOfTheStylesheetAndTheNodeOfTheInput(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	f := refused(t, mapsOf(t, pool, "xslt", "maps/m.xsl", sheet(`<xsl:template match="/"><xsl:apply-templates select="//o:Line"/></xsl:template>
<xsl:template match="o:Line">
  <xsl:if test="@qty = 'x'"><xsl:message terminate="yes">no quantity</xsl:message></xsl:if>
</xsl:template>`), nil), order)
	if f.File != "maps/m.xsl" || f.Place.Line != 7 || !strings.HasPrefix(f.Node, "/*/*[3]") || !strings.Contains(f.Message, "no quantity") {
		t.Errorf("xsl:message: %+v", f)
	}
	f = refused(t, mapsOf(t, pool, "xslt", "m.xsl", sheet(`<xsl:template match="/">
<A><xsl:value-of select="o:none(1)"/></A></xsl:template>`), nil), order)
	if f.Place.Line != 6 || !strings.Contains(f.Message, "none") {
		t.Errorf("a function that there is not: %+v", f)
	}
	f = refused(t, mapsOf(t, pool, "xslt", "m.xsl", sheet("<xsl:template match=\"/\">\n<xsl:value-of/></xsl:template>"), nil), order)
	if f.Place.Line != 6 || !strings.Contains(f.Message, "value-of") {
		t.Errorf("a stylesheet that cannot be compiled: %+v", f)
	}
	f = refused(t, mapsOf(t, pool, "xslt", "m.xsl", sheet(`<xsl:template match="/"><A/></xsl:template>`), nil), "<a>\n<b></a>")
	if f.File != "" || !strings.Contains(f.Message, "line 2") {
		t.Errorf("a document that is not well-formed: %+v", f)
	}
}

// A hostile document, or a map that never ends, costs its own message: the one behind it is mapped.
func TestAHostileDocumentCostsItsOwnMessage(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	copies := sheet(`<xsl:template match="/"><R><xsl:copy-of select="."/></R></xsl:template>`)
	entities := `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><a>&b;</a>`
	file := `<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><a>&a;</a>`
	deep := strings.Repeat("<a>", 100_000) + strings.Repeat("</a>", 100_000)
	cases := map[string]struct {
		text   string
		body   string
		more   settings
		expect string
	}{
		"entities":  {copies, entities, nil, "document type definition"},
		"files":     {copies, file, nil, "document type definition"},
		"deep":      {copies, deep, nil, "depth"},
		"recursion": {sheet(recursion), "<a/>", nil, ""},
		"document()": {
			sheet(`<xsl:template match="/"><xsl:copy-of select="document(a)"/></xsl:template>`), "<a>file:///etc/passwd</a>", nil,
			"no file of the map",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			maps := mapsOf(t, pool, "xslt", "m.xsl", c.text, c.more)
			f := refused(t, maps, c.body)
			if !strings.Contains(f.Message, c.expect) || f.Remedy == "" {
				t.Errorf("the fault is %+v, and should have %q and a remedy", f, c.expect)
			}
			if got := run(t, mapsOf(t, pool, "xslt", "m.xsl", copies, nil), "<a/>"); got != "<R><a/></R>" {
				t.Errorf("the next message became %s", got)
			}
		})
	}
}

const (
	memoryEater = `<xsl:template match="/"><xsl:call-template name="t"><xsl:with-param name="s" select="'0123456789'"/></xsl:call-template>
</xsl:template><xsl:template name="t"><xsl:param name="s"/><xsl:if test="string-length($s) &lt; 2000000000">
<xsl:call-template name="t"><xsl:with-param name="s" select="concat($s, $s)"/></xsl:call-template></xsl:if></xsl:template>`
	outputEater = `<xsl:template match="/"><R><xsl:call-template name="t"><xsl:with-param name="s" select="'0123456789'"/></xsl:call-template></R>
</xsl:template><xsl:template name="t"><xsl:param name="s"/><xsl:choose><xsl:when test="string-length($s) &lt; 3000000">
<xsl:call-template name="t"><xsl:with-param name="s" select="concat($s, $s)"/></xsl:call-template></xsl:when>
<xsl:otherwise><xsl:value-of select="$s"/></xsl:otherwise></xsl:choose></xsl:template>`
	recursion = `<xsl:template match="/"><xsl:call-template name="t"/></xsl:template>
<xsl:template name="t"><xsl:call-template name="t"/></xsl:template>`
)

// Many messages at once share the workers, and each gets its own result.
func TestMessagesAtTheSameTimeGetTheirOwnResults(t *testing.T) {
	t.Parallel()
	maps := mapsOf(t, poolOf(t), "xslt", "m.xsl", sheet(`<xsl:template match="/"><R><xsl:value-of select="."/></R></xsl:template>`), nil)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				value := fmt.Sprint(i*1000 + j)
				if got := run(t, maps, "<a>"+value+"</a>"); got != "<R>"+value+"</R>" {
					t.Errorf("message %s became %s", value, got)
				}
			}
		})
	}
	all.Wait()
}

// A large message is in a file, goes through a worker of its own, and comes out whole.
func TestALargeMessageIsMapped(t *testing.T) {
	t.Parallel()
	maps := mapsOf(t, poolOf(t), "xslt", "m.xsl", sheet(`<xsl:template match="@*|node()"><xsl:copy><xsl:apply-templates select="@*|node()"/></xsl:copy></xsl:template>`), nil)
	var body bytes.Buffer
	body.WriteString("<a>")
	for i := range 100_000 {
		fmt.Fprintf(&body, "<b n=\"%d\">text</b>", i)
	}
	body.WriteString("</a>")
	if got := run(t, maps, body.String()); got != body.String() {
		t.Errorf("it has %d bytes, and came out with %d", body.Len(), len(got))
	}
}

func TestABrokenProgramOfJQIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	pool := newPool(t, mapping.PoolConfig{})
	f := refused(t, mapsOf(t, pool, "jq", "m.jq", "{\n  a: (.b |\n}", nil), "{}")
	if f.Place.Line != 3 || f.File != "m.jq" {
		t.Errorf("%+v", f)
	}
	for program, expect := range map[string]string{
		"empty": "no value", ".,.": "several values", `error("no price")`: "no price", "env.PATH | length": "", "input": "",
	} {
		if body, err := try(t, mapsOf(t, pool, "jq", "m.jq", program, nil), "{}"); err == nil && expect != "" ||
			err != nil && !strings.Contains(err.Error(), expect) || program == "env.PATH | length" && body != "0" {
			t.Errorf("%s gave %q, %v", program, body, err)
		}
	}
	if f := refused(t, mapsOf(t, pool, "jq", "m.jq", ".", nil), "{} {}"); !strings.Contains(f.Message, "behind the JSON") {
		t.Errorf("%+v", f)
	}
}
