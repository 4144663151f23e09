package webhook

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "999999999": 24 * time.Hour, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q means %s, want %s", value, got, want)
		}
	}
}

func TestHeadersHoldAnyName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"//example.com/Order": "//example.com/Order", "100% été": "100%25 %C3%A9t%C3%A9", "a\r\nb": "a%0D%0Ab", " a b ": "%20a b%20", "": "",
	} {
		if got := headerText(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestWhatAnAnswerAsksFor(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, contentType, body string
		replies                 int
		ends, fails             bool
	}{
		{name: "nothing", contentType: "application/json"},
		{name: "text", contentType: "text/plain", body: `{"end": true}`},
		{name: "no type", body: `{"end": true}`},
		{name: "JSON of its own", contentType: "application/json", body: `{"ok": true}`},
		{name: "a list", contentType: "application/json", body: `[1]`},
		{name: "an end", contentType: "application/json; charset=utf-8", body: ` {"end": true} `, ends: true},
		{name: "replies", contentType: "application/json", body: `{"reply": {"message_type": "a"}, "replies": [{"message_type": "b", "body": null}]}`, replies: 2},
		{name: "malformed", contentType: "application/json", body: `{"end": tr`, fails: true},
		{name: "of another shape", contentType: "application/json", body: `{"reply": "x"}`, fails: true},
		{name: "two bodies", contentType: "application/json", body: `{"reply": {"message_type": "a", "body": "x", "body_base64": "eA=="}}`, fails: true},
		{name: "two ends", contentType: "application/json", body: `{"end": true, "end_with_error": {"code": 1, "description": "x"}}`, fails: true},
		{name: "an error without code", contentType: "application/json", body: `{"end_with_error": {"description": "x"}}`, fails: true},
	}
	for _, c := range cases {
		a, err := parseAnswer(c.contentType, []byte(c.body))
		if (err != nil) != c.fails || len(a.Replies) != c.replies || a.End != c.ends {
			t.Errorf("%s: got %+v, %v", c.name, a, err)
		}
	}
	if _, err := parseAnswer("text/plain", make([]byte, answerBytesMax+1)); err == nil {
		t.Error("an answer without end is taken")
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"end": true}`, `{"reply": {"message_type": "a", "body": {"x": [1, "y"]}}}`, `{"replies": [{"message_type": "a", "body": "é\ud800"}]}`,
		`{"reply": {"message_type": "a", "body_base64": "AP8="}, "end_with_error": {"code": 2147483647, "description": "x"}}`, `{"reply": null}`,
	} {
		f.Add("application/json", []byte(body))
	}
	f.Add("text/plain", []byte("thanks"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		a, err := parseAnswer(contentType, body)
		if err != nil {
			return
		}
		// An answer that was accepted can be carried out.
		for _, r := range a.Replies {
			if _, err := r.bytes(); err != nil || r.MessageType == "" {
				t.Errorf("%q gives a reply without body or type: %v", body, err)
			}
		}
		if a.EndWithError != nil && (a.End || a.EndWithError.Code <= 0) {
			t.Errorf("%q ends twice, or with code %d", body, a.EndWithError.Code)
		}
	})
}
