package jsonbody_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Any body is taken apart, or ends with a fault. Each message is JSON and has the bytes that the body has; joined, they are taken apart into
// the same messages.
func FuzzBodiesAreTakenApartAndJoined(f *testing.F) {
	for _, body := range []string{
		`{"id":1}`, `[{"id":1}, {"id":2}]`, " [ ] ", `1 "a" null`, `{"id":1}{"id":"x"}`, `[1,`, `[[1],[2]]x`, "\ufeff{}", `{"a":"\ud800"}`, `[1 2]`, `{"lines":[{"part":1}]}`,
	} {
		f.Add(body, true, 100)
		f.Add(body, false, 8)
	}
	f.Fuzz(func(t *testing.T, body string, isSplit bool, most int) {
		held := schema(t, true)
		for _, settings := range []jsonbody.Settings{
			{Split: isSplit, MostBytes: most},
			{Split: isSplit, MostBytes: most, Schema: held},
			{Split: isSplit, MostBytes: most, Schema: held, Recover: interchange.Messages},
		} {
			c, summary, err := split(t, body, settings)
			if int64(len(c.messages)) != summary.Messages || int64(len(c.bad)) != summary.Bad {
				t.Fatalf("the summary is %+v of %d messages", summary, len(c.messages))
			}
			at := 0
			for _, m := range c.messages {
				begin := strings.Index(body[at:], m)
				if !json.Valid([]byte(m)) || begin < 0 {
					t.Fatalf("%q: message %q is not a part of it", body, m)
				}
				at += begin + len(m)
			}
			for _, bad := range c.bad {
				if bad.From < 0 || bad.To < bad.From || bad.To > int64(len(body)) || bad.Fault.Remedy == "" {
					t.Fatalf("%q: a bad part is %+v", body, bad)
				}
			}
			if err != nil {
				if found, is := fault.Of(err); !is || found.Remedy == "" || found.Place.Byte > int64(len(body)) {
					t.Fatalf("%q ends with %v, which is no fault with a remedy", body, err)
				}
				continue
			}
			requireJoined(t, c.messages)
		}
	})
}

func requireJoined(t *testing.T, messages []string) {
	t.Helper()
	whole := [][]byte{}
	for _, m := range messages {
		whole = append(whole, []byte(m))
	}
	var out bytes.Buffer
	if err := jsonbody.Join(&out, whole, text.Output{}); err != nil {
		t.Fatal(err)
	}
	again, _, err := split(t, out.String(), jsonbody.Settings{Split: true})
	if err != nil || strings.Join(again.messages, "\n") != strings.Join(messages, "\n") {
		t.Fatalf("%q, joined as %s, is taken apart as %q, %v", messages, out.String(), again.messages, err)
	}
}
