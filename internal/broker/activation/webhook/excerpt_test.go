package webhook

import (
	"net/url"
	"strings"
	"testing"
)

// The answer of an address that refuses is shown to people who search the cause: its begin, as text, and nothing that is secret.
func TestAnswerThatRefusesIsKeptWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := &reader{definition: definition{Secret: "whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ=="}}
	var err error
	if r.url, err = url.Parse("https://example.com/in?key=open%20sesame&n=1"); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		"": "", "no such customer": "no such customer", "  {\"error\": 1}\n": `{"error": 1}`,
		"a\x00b": "", "bad \xff byte": "bad \uFFFD byte",
		"whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ== is wrong":  "[hidden] is wrong",
		"key c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ== is wrong":    "key [hidden] is wrong",
		"GET /in?key=open%20sesame&n=1 failed":                 "GET /in?[hidden] failed",
		"key open sesame, or open+sesame, is too old, n is 1":  "key [hidden], or [hidden], is too old, n is 1",
		strings.Repeat("é", excerptRunesMax):                   strings.Repeat("é", excerptRunesMax),
		strings.Repeat("é", excerptRunesMax) + " and the rest": strings.Repeat("é", excerptRunesMax-1) + "…",
	} {
		if got := r.excerpt([]byte(body)); got != want {
			t.Errorf("of %.60q is kept %.60q, want %.60q", body, got, want)
		}
	}
}
