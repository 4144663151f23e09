package pairing

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-broker/parley"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	offer := truststore.PairingOffer{Name: "a", Databases: []truststore.OfferedDatabase{{Instance: parley.UUID{1}, Database: "ä", Services: []string{"//x"}}}}
	var buffer bytes.Buffer
	for _, m := range []message{{Proof: []byte{1, 2}}, {Verdict: new(false)}, {Offer: &offer}} {
		if err := send(&buffer, m); err != nil {
			t.Fatal(err)
		}
		got, err := receive(&buffer)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(m)
		if text, _ := json.Marshal(got); string(text) != string(want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	if _, err := receive(bytes.NewReader([]byte{0, 4, 0, 1})); err == nil || !strings.Contains(err.Error(), "too much") {
		t.Errorf("got %v", err)
	}
}

func TestOffersThatNoBrokerMakesAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"control characters":      `{"offer":{"name":"a\u001b[2Jb"}}`,
		"a long name":             `{"offer":{"name":"` + strings.Repeat("x", 300) + `"}}`,
		"a database without id":   `{"offer":{"databases":[{"database":"x"}]}}`,
		"an id that is none":      `{"offer":{"databases":[{"instance":"x"}]}}`,
		"a service with a line":   `{"offer":{"databases":[{"instance":"00000000-0000-0000-0000-000000000001","services":["a\nb"]}]}}`,
		"two messages":            `{} {}`,
		"no object":               `[]`,
		"a verdict that is none":  `{"verdict":"yes"}`,
		"an invitation that none": `{"invitation":"1"}`,
	} {
		if m, err := parse([]byte(text)); err == nil {
			t.Errorf("%s: read as %+v", name, m)
		}
	}
	if m, err := parse([]byte(`{"failure":"a\u001bb","of a newer version":1}`)); err != nil || m.Failure != "a?b" {
		t.Errorf("read as %+v, %v", m, err)
	}
}

func FuzzReceive(f *testing.F) {
	for _, m := range []message{
		{Verdict: new(true), Offer: &truststore.PairingOffer{Name: "a"}}, {Invitation: &parley.UUID{1}, Proof: []byte{1}}, {Failure: "x"},
	} {
		var buffer bytes.Buffer
		if err := send(&buffer, m); err != nil {
			f.Fatal(err)
		}
		f.Add(buffer.Bytes())
	}
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := receive(bytes.NewReader(raw))
		if err != nil {
			return
		}
		var buffer bytes.Buffer
		if err := send(&buffer, m); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := receive(&buffer); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func FuzzParseToken(f *testing.F) {
	f.Add(tokenPrefix + strings.Repeat("0f", 32))
	f.Add(tokenPrefix)
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		again := tokenPrefix + hex.EncodeToString(token.Invitation[:]) + hex.EncodeToString(token.secret)
		if !strings.EqualFold(again, strings.TrimSpace(text)) {
			t.Errorf("%q is read as %q", text, again)
		}
	})
}
