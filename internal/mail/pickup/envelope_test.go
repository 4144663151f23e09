package pickup

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
)

// A file that we have exported says whether its message originates here, and what we had verified; one of others says neither.
func TestFileOfOthersDoesNotOriginateHere(t *testing.T) {
	t.Parallel()
	const ours, originating, end = "X-CreatedBy: Parley\n", "X-Directionality: originating\n", "X-EndOfInjectedXHeaders: 1\n"
	for _, c := range []struct {
		name, fields   string
		want           string
		keepsOurResult bool
	}{
		{"one of others", "", message.Incoming, false},
		{"one of others that says so", originating + end, message.Incoming, false},
		{"one of another program", "X-CreatedBy: somebody\n" + originating + end, message.Incoming, false},
		{"ours", ours + originating + end, message.Originating, true},
		{"ours, from outside", ours + "X-Directionality: incoming\n" + end, message.Incoming, true},
		{"ours, without saying", ours + end, message.Incoming, true},
		{"ours, without the end of our fields", ours + originating, message.Incoming, true},
	} {
		f, s := newFolder(t, true)
		f.put(t, "a.eml", "X-Sender: <a@b>\nX-Receiver: <c@d>\n"+c.fields+"Authentication-Results: mx.example.com; spf=pass\nFrom: a@b\n\nx")
		f.poll(t)
		if len(s.got) != 1 || s.got[0].Directionality != c.want || strings.Contains(s.text[0], "spf=pass") != c.keepsOurResult {
			t.Errorf("%s: %+v, %q", c.name, s.got, s.text)
		}
	}
}

// The message's demands on hosts are found in it: letters beyond ASCII in an address or the header, and bytes above 127 in its body.
func TestFileSaysWhatItsMessageNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		isReplay   bool
		isUTF8     bool
		body       message.BodyType
	}{
		{name: "nothing", text: "From: a@b\nTo: c@d\n\nx"},
		{name: "a body of 8 bits", text: "From: a@b\nTo: c@d\n\n\u00e9", body: "8BITMIME"},
		{name: "a sender", text: "From: \u00e9@b\nTo: c@d\n\nx", isUTF8: true, body: "8BITMIME"},
		{name: "a recipient", text: "From: a@b\nTo: \u00e9@d\n\nx", isUTF8: true, body: "8BITMIME"},
		{name: "nothing, replayed", text: "X-Sender: <a@b>\nX-Receiver: <c@d>\nFrom: a@b\n\nx", isReplay: true},
		{name: "a sender, replayed", text: "X-Sender: <\u00e9@b>\nX-Receiver: <c@d>\nFrom: a@b\n\nx", isReplay: true, isUTF8: true, body: "8BITMIME"},
		{name: "a recipient, replayed", text: "X-Sender: <a@b>\nX-Receiver: <\u00e9@d>\nFrom: a@b\n\nx", isReplay: true, isUTF8: true, body: "8BITMIME"},
		{name: "a header, replayed", text: "X-Sender: <a@b>\nX-Receiver: <c@d>\nSubject: \u00e9\n\nx", isReplay: true, isUTF8: true, body: "8BITMIME"},
		{name: "what is said, replayed", text: "X-Sender: <a@b> BODY=8BITMIME SMTPUTF8\nX-Receiver: <c@d>\nFrom: a@b\n\nx", isReplay: true, isUTF8: true, body: "8BITMIME"},
	} {
		f, s := newFolder(t, c.isReplay)
		f.put(t, "a.eml", c.text)
		f.poll(t)
		if len(s.got) != 1 || s.got[0].IsUTF8 != c.isUTF8 || s.got[0].BodyType != c.body {
			t.Errorf("%s: %+v, left %q", c.name, s.got, f.files(t))
		}
	}
}

// A file that ends within its header is a message without a body.
func TestFileThatEndsInItsHeaderIsAMessage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"From: a@b\nTo: c@d", "From: a@b\nTo: c@d\n", "From: a@b\r\nTo: c@d\r\n\r\n"} {
		f, s := newFolder(t, false)
		f.put(t, "a.eml", text)
		f.poll(t)
		if len(s.got) != 1 || !strings.Contains(s.text[0], "To: c@d\r\n") || !strings.HasSuffix(s.text[0], "\r\n\r\n") {
			t.Errorf("%q: %q, left %q", text, s.text, f.files(t))
		}
	}
}

// While resources are short no file is touched; what is set aside takes the place of no other file.
func TestFilesAreKept(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	f.put(t, "a.eml", "From: a@b\nTo: c@d\n\nx")
	f.IsRejected = func() bool { return true }
	if f.poll(t); len(s.got) != 0 || strings.Join(f.files(t), " ") != "a.eml" {
		t.Errorf("%d messages were submitted, left is %q", len(s.got), f.files(t))
	}
	f.IsRejected = nil
	for range 3 {
		f.put(t, "a.eml", "no message")
		f.poll(t)
	}
	if got := strings.Join(f.files(t), " "); got != "a.bad a~.bad a~.bad" {
		t.Errorf("set aside are %q", got)
	}
}
