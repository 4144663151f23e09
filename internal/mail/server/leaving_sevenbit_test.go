package server // Messages that leave are not exported.

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/signing"
)

// A message for a host that takes 7 bits is converted before it is signed, so that the signature fits what arrives; a host that takes 8 gets
// the message as it is.
func TestWhatIsConvertedIsSignedAsItLeaves(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	record, err := signing.Record(private)
	if err != nil {
		t.Fatal(err)
	}
	const text = "From: ann@a.example\r\nSubject: für\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGrüße\r\n"
	for _, isSevenBit := range []bool{true, false} {
		way := &taking{isSevenBit: isSevenBit}
		leaving := leavingWay{Way: way, keys: map[string][]signing.Key{"a.example": {{Domain: "a.example", Selector: "s", Signer: private}}}}
		results := leaving.Send(t.Context(), send.Message{
			Recipients: make([]send.Recipient, 1), Size: int64(len(text)), IsOriginating: true,
			Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		})
		if results[0].Class != send.Delivered || way.size != int64(len(way.got)) {
			t.Fatalf("%+v: %d bytes left of %d", results[0], len(way.got), way.size)
		}
		if hasEight := strings.ContainsFunc(way.got, func(r rune) bool { return r > 0x7f }); hasEight == isSevenBit {
			t.Errorf("to a host of 7 bits (%v) left %q", isSevenBit, way.got)
		}
		verified, err := dkim.VerifyWithOptions(strings.NewReader(way.got), &dkim.VerifyOptions{
			LookupTXT: func(string) ([]string, error) { return []string{record}, nil },
		})
		if err != nil || len(verified) != 1 || verified[0].Err != nil {
			t.Errorf("to a host of 7 bits (%v): the signature is %+v (%v) of %q", isSevenBit, verified, err, way.got)
		}
	}
}
