package mapping_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
)

const (
	// searcher searches a text of 5 MB for each element: long work in few operations.
	searcher = `<xsl:template match="/"><xsl:call-template name="t"><xsl:with-param name="s" select="'0123456789'"/></xsl:call-template></xsl:template>
<xsl:template name="t"><xsl:param name="s"/><xsl:choose><xsl:when test="string-length($s) &lt; 5000000">
<xsl:call-template name="t"><xsl:with-param name="s" select="concat($s, $s)"/></xsl:call-template></xsl:when>
<xsl:otherwise><R><xsl:for-each select="/a/b"><xsl:if test="contains($s, '98')">x</xsl:if></xsl:for-each></R></xsl:otherwise></xsl:choose></xsl:template>`
	// walker looks at all elements for each element: many operations of which none takes long, so that they are used up before the time.
	walker = `<xsl:template match="/"><R><xsl:value-of select="count(/a/b[../c])"/></R></xsl:template>`
)

// Each limit is broken by a map or a document that does no harm but to use much. Its message fails, with the limit and its remedy; those
// beside it, and the one behind it, go through the same single worker.
func TestALimitCostsItsOwnMessageAlone(t *testing.T) {
	t.Parallel()
	wide := "<a>" + strings.Repeat("<b/>", 20_000) + "</a>"
	deep := strings.Repeat("<a>", 1500) + strings.Repeat("</a>", 1500)
	for name, c := range map[string]struct {
		language, text, body string
		more                 settings
		message, remedy      string
	}{
		"xslt, memory":     {"xslt", sheet(memoryEater), "<a/>", settings{"memory_mb": 64}, "64 MB", "memory_mb"},
		"xslt, time":       {"xslt", sheet(searcher), wide, settings{"timeout_s": 1}, "seconds", "timeout_s"},
		"xslt, operations": {"xslt", sheet(walker), wide, settings{"timeout_s": 1}, "operations", "timeout_s"},
		"xslt, output":     {"xslt", sheet(outputEater), "<a/>", settings{"output_mb": 1}, "1048576 bytes", "output_mb"},
		"xslt, depth":      {"xslt", sheet(`<xsl:template match="/"><R/></xsl:template>`), deep, nil, "more than 1000", ""},
		"jq, memory":       {"jq", "[range(1e8)] | length", "{}", settings{"memory_mb": 64, "timeout_s": 60}, "64 MB", "memory_mb"},
		"jq, time":         {"jq", "last(range(1e12))", "{}", settings{"timeout_s": 1}, "seconds", "timeout_s"},
		"jq, output":       {"jq", `"0123456789" * 300000`, "{}", settings{"output_mb": 1}, "1048576 bytes", "output_mb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, mapping.PoolConfig{XSLT: mappingtest.Worker(t), Workers: 1})
			benign, small := mapsOf(t, pool, "jq", "m.jq", ".a", nil), `{"a": 7.10}`
			want := "7.10"
			if c.language == "xslt" {
				want = "7"
				benign, small = mapsOf(t, pool, "xslt", "m.xsl", sheet(`<xsl:template match="/"><xsl:value-of select="a"/></xsl:template>`), nil), "<a>7</a>"
			}
			hostile := mapsOf(t, pool, c.language, "m", c.text, c.more)
			var beside sync.WaitGroup
			for range 3 {
				beside.Go(func() {
					if got, err := try(t, benign, small); err != nil || got != want {
						t.Errorf("a message beside it became %q, %v", got, err)
					}
				})
			}
			f := refused(t, hostile, c.body)
			if !strings.Contains(f.Message, c.message) || !strings.Contains(f.Remedy, c.remedy) || f.Remedy == "" {
				t.Errorf("the fault is %q with the remedy %q, and not %q and %q", f.Message, f.Remedy, c.message, c.remedy)
			}
			if got := run(t, benign, small); got != want {
				t.Errorf("the next message became %s", got)
			}
			beside.Wait()
		})
	}
}
