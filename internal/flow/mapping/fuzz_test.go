package mapping_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
)

// Of each document the map makes something, or refuses it with a fault; the worker never fails.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		order, "", "<a", "<a/>", `<?xml version="1.0" encoding="utf-16"?><a/>`, "\xff\xfe<\x00a\x00/\x00>\x00", "<a>&#0;</a>", "<a xmlns:b=''/>",
		`<a b="1" b="2"/>`, "<a><![CDATA[]]></a>", "<!DOCTYPE a><a/>", "<a>\x00</a>", "<a:b/>", "<?x y?><a/>", "<a>\xc3</a>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		maps := mapsOf(t, poolOf(t), "xslt", "m.xsl", sheet(`<xsl:template match="/"><R n="{count(//@*)}"><xsl:copy-of select="*"/>
<xsl:value-of select="userCSharp:StringUpperCase(userCSharp:StringSubstring(string(/*), '2', '5'))"/></R></xsl:template>`), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := maps.Run(ctx, "M", []mapping.Input{input(body)})
		if err == nil {
			if err := out.Body.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		if found, is := fault.Of(err); !is || found.Err != nil {
			t.Errorf("the worker has failed: %v", err)
		}
	})
}
