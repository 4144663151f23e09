package mapping_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
)

// canary is a file that no map may read, and an address that no map may reach.
type canary struct {
	file, folder, address string
	reached               atomic.Int32
}

const canaryText = "what-no-map-may-read"

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{folder: t.TempDir()}
	c.file = filepath.Join(c.folder, "canary.xml")
	if err := os.WriteFile(c.file, []byte("<x>"+canaryText+"</x>"), 0o600); err != nil {
		t.Fatal(err)
	}
	include := sheet(`<xsl:template match="/"><R>` + canaryText + `</R></xsl:template>`)
	if err := os.WriteFile(filepath.Join(c.folder, "include.xsl"), []byte(include), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c.address = "http://" + l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.reached.Add(1)
			_ = conn.Close()
		}
	}()
	return c
}

// hostile are stylesheets that read files, reach the network or write, in the ways that XSLT, its extensions and XML know.
func (c *canary) hostile() map[string]string {
	root := func(body string) string { return sheet(`<xsl:template match="/"><R>` + body + `</R></xsl:template>`) }
	copyOf := func(expression string) string { return root(`<xsl:copy-of select="` + expression + `"/>`) }
	typed := func(declaration, text string) string { return "<!DOCTYPE xsl:stylesheet [" + declaration + "]>" + text }
	written := filepath.Join(c.folder, "written")
	return map[string]string{
		"document()":                        copyOf("document('" + c.file + "')"),
		"document() of the network":         copyOf("document('" + c.address + "/a.xml')"),
		"document() by a reference":         copyOf("docum&#101;nt('" + c.file + "')"),
		"document() by an entity":           typed(`<!ENTITY d "docum">`, copyOf("&d;ent('"+c.file+"')")),
		"document() with a computed name":   copyOf("document(concat('" + c.folder + "', '/canary.xml'))"),
		"an entity of a file":               typed(`<!ENTITY f SYSTEM "`+c.file+`">`, root("&f;")),
		"an entity of the network":          typed(`<!ENTITY f SYSTEM "`+c.address+`/a.xml">`, root("&f;")),
		"a type definition of a file":       `<!DOCTYPE xsl:stylesheet SYSTEM "` + c.file + `">` + root("x"),
		"a type definition of the network":  `<!DOCTYPE xsl:stylesheet SYSTEM "` + c.address + `/a.dtd">` + root("x"),
		"an include of a file":              sheet(`<xsl:include href="` + c.folder + `/include.xsl"/>`),
		"an include by a file address":      sheet(`<xsl:include href="file://` + c.folder + `/include.xsl"/>`),
		"an import of the network":          sheet(`<xsl:import href="` + c.address + `/include.xsl"/>`),
		"an include upwards":                sheet(`<xsl:include href="../../../../../../../../..` + c.folder + `/include.xsl"/>`),
		"an include from another base":      sheet(`<xsl:include xml:base="` + c.folder + `/" href="include.xsl"/>`),
		"an expression that is made":        root(`<xsl:copy-of xmlns:d="http://exslt.org/dynamic" select="d:evaluate(concat('docu', 'ment(&quot;` + c.file + `&quot;)'))"/>`),
		"an expression of another one":      root(`<xsl:copy-of xmlns:d="http://exslt.org/dynamic" select="d:map(/, concat('docu', 'ment(&quot;` + c.file + `&quot;)'))"/>`),
		"an expression of saxon":            root(`<xsl:copy-of xmlns:s="http://icl.com/saxon" select="s:evaluate(concat('docu', 'ment(&quot;` + c.file + `&quot;)'))"/>`),
		"a prefix that was another's":       root(`<b xmlns:d="http://exslt.org/dynamic"><c xmlns:d="http://exslt.org/math"/><xsl:copy-of select="d:evaluate(concat('docu', 'ment(&quot;` + c.file + `&quot;)'))"/></b>`),
		"a document that is written":        root(`<exsl:document xmlns:exsl="http://exslt.org/common" href="` + written + `" extension-element-prefixes="exsl">x</exsl:document>`),
		"a document of XSLT 1.1":            root(`<xsl:document href="` + written + `">x</xsl:document>`),
		"a document of xt":                  root(`<xt:document xmlns:xt="http://www.jclark.com/xt" href="` + written + `" extension-element-prefixes="xt">x</xt:document>`),
		"a document of saxon":               root(`<s:output xmlns:s="http://icl.com/saxon" href="` + written + `" extension-element-prefixes="s">x</s:output>`),
		"a document of xalan":               root(`<r:write xmlns:r="org.apache.xalan.xslt.extensions.Redirect" select="'` + written + `'" extension-element-prefixes="r">x</r:write>`),
		"a declaration that hides the text": "<?xml version='1.0' encoding='utf-8' standalone='yes'?><!DOCTYPE xsl:stylesheet [<!ENTITY f SYSTEM '" + c.file + "'>]>" + root("&f;"),
	}
}

// A stylesheet is refused, or makes something of the message alone: it reads no file, reaches no address and writes nothing.
func TestAHostileStylesheetReadsAndWritesNothing(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	programs := map[string]string{"the worker": mappingtest.Worker(t)}
	if _, err := os.Stat("/usr/bin/xsltproc"); err == nil {
		programs["xsltproc"] = "/usr/bin/xsltproc"
	}
	for program, path := range programs {
		pool := newPool(t, mapping.PoolConfig{XSLT: path, Workers: 1})
		for name, text := range c.hostile() {
			got, err := try(t, mapsOf(t, pool, "xslt", "m.xsl", text, nil), "<a/>")
			if strings.Contains(got+fmt.Sprint(err), canaryText) {
				t.Errorf("%s, %s: it made %q, %v", program, name, got, err)
			}
			if err == nil && (strings.Contains(name, "include") || strings.Contains(name, "import")) {
				t.Errorf("%s, %s: it made %q, and what it includes is not there", program, name, got)
			}
		}
		benign := mapsOf(t, pool, "xslt", "m.xsl", sheet(`<xsl:template match="/"><R><xsl:copy-of select="*"/></R></xsl:template>`), nil)
		if got := run(t, benign, "<a/>"); got != "<R><a/></R>" {
			t.Errorf("%s: the next message became %s", program, got)
		}
	}
	if n := c.reached.Load(); n > 0 {
		t.Errorf("the network was reached %d times", n)
	}
	if files, err := os.ReadDir(c.folder); err != nil || len(files) != 2 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}
