package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verify reports whether a request comes from Parley and is new: who knows the secret has signed id, time and body.
func verify(secret string, header http.Header, body []byte, now time.Time) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	seconds, err := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header.Get("Webhook-Id") + "." + header.Get("Webhook-Timestamp") + "." + string(body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}
	return false
}

const fixtureSecret = "whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ=="

func TestReceiversCanDistinguishSignedRequests(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"envelope", "raw"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, ", body_format => '"+format+"'", accept)
			b.dialog("x")
			b.run(1)
			r, now := b.seen()[0], time.Now()
			if !verify(fixtureSecret, r.header, r.body, now) {
				t.Fatal("the request is not signed")
			}
			altered := func(name, value string) http.Header {
				h := r.header.Clone()
				h.Set(name, value)
				return h
			}
			for name, forged := range map[string]bool{
				"another body":      verify(fixtureSecret, r.header, append([]byte(" "), r.body...), now),
				"another secret":    verify("whsec_YW5vdGhlciBrZXkgb2Ygc2l4dGVlbiBieXRlcw==", r.header, r.body, now),
				"another id":        verify(fixtureSecret, altered("Webhook-Id", "x"), r.body, now),
				"another time":      verify(fixtureSecret, altered("Webhook-Timestamp", strconv.FormatInt(now.Unix()-60, 10)), r.body, now),
				"another signature": verify(fixtureSecret, altered("Webhook-Signature", "v1,AAAA"), r.body, now),
				"no signature":      verify(fixtureSecret, altered("Webhook-Signature", ""), r.body, now),
				"an old request":    verify(fixtureSecret, r.header, r.body, now.Add(time.Hour)),
			} {
				if forged {
					t.Errorf("%s is taken", name)
				}
			}
		})
	}
}

// The code that the documentation shows is the code that is tested here.
func TestVerifyIsInTheDocumentation(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("verify_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/guides/activation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "\n// verify reports")
	function, _, found := strings.Cut(rest, "\n}\n")
	shown := strings.ReplaceAll("// verify reports"+function+"\n}\n", "\t", "    ")
	if !found || !strings.Contains(string(page), shown) {
		t.Error("docs/guides/activation.md shows another function verify")
	}
}
