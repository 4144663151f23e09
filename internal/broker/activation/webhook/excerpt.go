package webhook

import (
	"bytes"
	"net/url"
	"strings"
)

const (
	// excerptRunesMax bounds what is kept of an answer that refuses.
	excerptRunesMax = 4096
	// secretBytesMin is the shortest text that is taken for a secret: a shorter one stands in any answer by chance.
	secretBytesMin = 6
	hidden         = "[hidden]"
)

// excerpt gives the begin of an answer that refuses, for people who search the cause. An answer that repeats the request shows
// nobody what is secret in it: the key that signs, and what stands in the query of the address.
func (r *reader) excerpt(body []byte) string {
	if bytes.IndexByte(body, 0) >= 0 {
		return ""
	}
	text := strings.ToValidUTF8(string(bytes.TrimSpace(body)), "\uFFFD")
	for _, secret := range r.secretTexts() {
		if len(secret) >= secretBytesMin {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	if runes := []rune(text); len(runes) > excerptRunesMax {
		text = string(runes[:excerptRunesMax-1]) + "…"
	}
	return text
}

// secretTexts are the secrets in the forms in which they may be repeated, the longest of each first.
func (r *reader) secretTexts() []string {
	texts := []string{r.Secret, strings.TrimPrefix(r.Secret, "whsec_")}
	if r.url == nil || r.url.RawQuery == "" {
		return texts
	}
	texts = append(texts, r.url.RawQuery)
	for _, values := range r.url.Query() {
		for _, value := range values {
			texts = append(texts, value, url.QueryEscape(value))
		}
	}
	return texts
}
