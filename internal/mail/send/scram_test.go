package send // The answer of the client is not exported.

import (
	"strings"
	"testing"
)

// A challenge has to go on with our nonce, and may ask for a million rounds at most.
func TestChallengeIsBounded(t *testing.T) {
	t.Parallel()
	for challenge, isAnswered := range map[string]bool{
		"r=NONCEmore,s=c2FsdA==,i=1":       true,
		"r=NONCEmore,s=c2FsdA==,i=1000000": true,
		"r=NONCEmore,s=c2FsdA==,i=1000001": false,
		"r=NONCEmore,s=c2FsdA==,i=0":       false,
		"r=NONCEmore,s=c2FsdA==,i=-1":      false,
		"r=NONCEmore,s=c2FsdA==,i=many":    false,
		"r=NONCEmore,s=!,i=1":              false,
		"r=NONCE,s=c2FsdA==,i=1":           false,
		"r=more,s=c2FsdA==,i=1":            false,
		"m=x,r=NONCEmore,s=c2FsdA==,i=1":   false,
		"r=NONCEmore,s=c2FsdA==":           false,
		"":                                 false,
	} {
		client, is := newScramClient("who", "secret").(*scramClient)
		if _, _, err := client.Start(); !is || err != nil {
			t.Fatal(err)
		}
		_, err := client.Next([]byte(strings.ReplaceAll(challenge, "NONCE", client.nonce)))
		if (err == nil) != isAnswered || client.hasProof() {
			t.Errorf("%q: %v", challenge, err)
		}
		if isAnswered {
			if _, err := client.Next([]byte("v=AAAA")); err == nil || client.hasProof() {
				t.Errorf("%q: a proof that is none is taken", challenge)
			}
		}
	}
}
