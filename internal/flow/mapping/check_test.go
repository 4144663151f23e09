package mapping_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
)

func problemsIn(t *testing.T, pool *mapping.Pool, document any) (found []string) {
	t.Helper()
	written, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := mapping.Check(t.Context(), written, pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		found = append(found, strings.Join(p.Path, "/")+": "+p.Fault.Error())
		if p.Fault.Remedy == "" {
			t.Errorf("%s has no remedy", p.Fault)
		}
	}
	return found
}

// A stylesheet is compiled when it is applied; where nothing can compile it, that is said, and only of stylesheets.
func TestAWrongStylesheetIsRefusedWhenItIsApplied(t *testing.T) {
	t.Parallel()
	broken := settings{"map": settings{"M": settings{"language": "xslt", "program": settings{
		"file": "m.xsl", "documents": settings{"m.xsl": sheet("<xsl:template match=\"/\">\n<xsl:if/></xsl:template>")},
	}}, "J": settings{"language": "jq", "program": settings{"file": "m.jq", "documents": settings{"m.jq": ".a"}}}}}
	found := problemsIn(t, poolOf(t), broken)
	if len(found) != 1 || !strings.HasPrefix(found[0], "map/M/program: m.xsl: line 6: ") {
		t.Errorf("found are %q", found)
	}
	if found := problemsIn(t, nil, broken); len(found) > 0 {
		t.Errorf("without a pool: %q", found)
	}
}

// libxslt compiles elements and functions that there are not, and fails with the first message that comes there.
func TestAStylesheetWithWhatXSLTDoesNotHaveIsRefusedWithItsLine(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"<xsl:template match=\"/\">\n<xsl:valueof select=\"1\"/></xsl:template>":                                                  "line 6: XSLT 1.0 has no element valueof",
		"<xsl:template match=\"/\">\n<xsl:value-of select=\"count(nubmer(/a))\"/></xsl:template>":                                 "line 6: XPath 1.0 has no function nubmer()",
		"<xsl:template match=\"/\">\n<xsl:if test=\"a and (b or not(matches(c, 'x')))\"/></xsl:template>":                         "line 6: XPath 1.0 has no function matches()",
		`<xsl:template match="/a[text() = 'nubmer(1)']"><xsl:value-of select="-(1)*count(//b)-count(a) mod (2)"/></xsl:template>`: "",
		`<xsl:template match="node()|id('x')/child::text()"><xsl:value-of select="$a div (2 - position())"/></xsl:template>`:      "",
	} {
		found := problemsIn(t, nil, settings{"map": settings{"M": settings{"language": "xslt", "program": settings{
			"file": "m.xsl", "documents": settings{"m.xsl": sheet(body)},
		}}}})
		if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || found[0] != "map/M/program: m.xsl: "+want) {
			t.Errorf("%s: found are %q", body, found)
		}
	}
}

// The language of a map says in which form it takes and makes messages.
func TestAMapOfTypesInAnotherFormIsRefused(t *testing.T) {
	t.Parallel()
	jq := func(source, target string) settings {
		return settings{"language": "jq", "source": source, "target": target, "program": settings{
			"file": "m.jq", "documents": settings{"m.jq": ".a"},
		}}
	}
	found := problemsIn(t, nil, settings{
		"message type": settings{"J": settings{"format": "json"}, "X": settings{}},
		"map": settings{
			"A": jq("J", "J"), "B": jq("J", "X"), "C": jq("X", "not defined"),
			"D": settings{"language": "xslt", "source": "J", "target": "J", "program": settings{
				"file": "m.xsl", "documents": settings{"m.xsl": sheet(`<xsl:template match="/"/>`)},
			}},
		},
	})
	want := []string{
		"map/B/target: a map in jq makes json, and messages of type X are of format xml",
		"map/C/source: a map in jq takes json, and messages of type X are of format xml",
		"map/D/source: a map in xslt takes xml, and messages of type J are of format json",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found are %q", found)
	}
}

func TestWithoutAProgramForStylesheetsThatIsSaid(t *testing.T) { //nolint:paralleltest // It changes PATH.
	t.Setenv("PATH", t.TempDir())
	maps := mapsOf(t, newPool(t, mapping.PoolConfig{}), "xslt", "m.xsl", sheet(`<xsl:template match="/"/>`), nil)
	if _, err := maps.Run(t.Context(), "M", []mapping.Input{input("<a/>")}); !errors.Is(err, mapping.ErrNoXSLT) {
		t.Errorf("it is %v", err)
	}
}

// A map is read with the files that it names, in the charset of each.
func TestAMapIsReadWithTheFilesThatItNames(t *testing.T) {
	t.Parallel()
	utf16 := []byte{0xFF, 0xFE}
	for _, r := range `<?xml version="1.0" encoding="utf-16"?>` + sheet(`<xsl:template match="/"><R><xsl:value-of select="document('codes.xml')/c"/></R></xsl:template>`) {
		utf16 = append(utf16, byte(r), byte(r>>8))
	}
	folder := fstest.MapFS{
		"maps/m.xsl":            {Data: []byte(sheet(`<xsl:include href="parts/part.xsl"/>`))},
		"maps/parts/part.xsl":   {Data: utf16},
		"maps/parts/codes.xml":  {Data: []byte("<c>7</c>")},
		"maps/parts/secret.xml": {Data: []byte("<c>7</c>")},
	}
	program, err := mapping.Read(folder, "maps/m.xsl")
	if err != nil {
		t.Fatal(err)
	}
	if len(program.Documents) != 3 {
		t.Errorf("read are %v", program.Documents)
	}
	written, err := json.Marshal(settings{"M": mapping.Definition{Language: "xslt", Program: *program}})
	if err != nil {
		t.Fatal(err)
	}
	maps, err := mapping.New(written, poolOf(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, maps, "<a/>"); got != "<R>7</R>" {
		t.Errorf("it made %s", got)
	}
}

// The binary carries the source of the worker, and builds it where there is a compiler.
func TestTheWorkerIsBuiltOfTheSourceInTheBinary(t *testing.T) {
	t.Parallel()
	mappingtest.Worker(t)
	folder := t.TempDir()
	name, err := mapping.BuildWorker(t.Context(), "", folder)
	if err != nil {
		t.Fatal(err)
	}
	maps := mapsOf(t, newPool(t, mapping.PoolConfig{XSLT: name}), "xslt", "m.xsl", sheet(`<xsl:template match="/"><R/></xsl:template>`), nil)
	if got := run(t, maps, "<a/>"); got != "<R/>" {
		t.Errorf("it made %s", got)
	}
	if _, err := mapping.BuildWorker(t.Context(), filepath.Join(folder, "no-cc"), folder); err == nil || !strings.Contains(err.Error(), "no-cc") {
		t.Errorf("without a compiler: %v", err)
	}
}

// xsltproc stands in where there is no worker, with what it can do.
func TestXsltprocStandsIn(t *testing.T) {
	t.Parallel()
	const xsltproc = "/usr/bin/xsltproc"
	if _, err := os.Stat(xsltproc); err != nil {
		if os.Getenv("PARLEY_TEST_REQUIRE_XSLT") != "" {
			t.Fatal(err)
		}
		t.Skip("xsltproc is not installed")
	}
	pool := newPool(t, mapping.PoolConfig{XSLT: xsltproc})
	copies := mapsOf(t, pool, "xslt", "m.xsl", sheet(`<xsl:template match="/"><R><xsl:copy-of select="*"/></R></xsl:template>`), nil)
	if got := run(t, copies, "<a>ä</a>"); got != "<R><a>ä</a></R>" {
		t.Errorf("it made %s", got)
	}
	for name, c := range map[string]struct{ text, body, expect string }{
		"entities":  {`<xsl:template match="/"><xsl:copy-of select="*"/></xsl:template>`, `<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>`, ""},
		"files":     {`<xsl:template match="/"><xsl:copy-of select="document('/etc/passwd')"/></xsl:template>`, "<a/>", "document()"},
		"functoids": {`<xsl:template match="/"><xsl:value-of select="userCSharp:MathAbs('1')"/></xsl:template>`, "<a/>", "userCSharp:MathAbs"},
		"a message": {"<xsl:template match=\"/\">\n<xsl:message terminate=\"yes\">no price</xsl:message></xsl:template>", "<a/>", "no price"},
		"an error":  {"<xsl:template match=\"/\">\n<xsl:value-of select=\"o:f()\"/></xsl:template>", "<a/>", "line 6"},
	} {
		f := refused(t, mapsOf(t, pool, "xslt", "m.xsl", sheet(c.text), nil), c.body)
		if !strings.Contains(f.Error(), c.expect) {
			t.Errorf("%s: %v, and should have %q", name, f, c.expect)
		}
	}
}

// Without the worker a stylesheet that is no XML is still said to be so: another program would not mend it.
func TestAStylesheetThatIsNoXMLIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	xsltproc := filepath.Join(t.TempDir(), "xsltproc")
	if err := os.WriteFile(xsltproc, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	found := problemsIn(t, newPool(t, mapping.PoolConfig{XSLT: xsltproc, Workers: 1}), settings{"map": settings{"M": settings{
		"language": "xslt", "program": settings{"file": "m.xsl", "documents": settings{"m.xsl": sheet("<a>\n</b>")}},
	}}})
	if len(found) != 1 || !strings.Contains(found[0], "m.xsl: line 6: the stylesheet cannot be read as XML: element <a> closed by </b>") {
		t.Errorf("found are %q", found)
	}
}
