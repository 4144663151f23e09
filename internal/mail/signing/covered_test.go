package signing_test

import (
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/signing"
)

// namesOf gives the names of the fields of a message.
func namesOf(text string) (names []string) {
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		if name, _, isField := strings.Cut(line, ":"); isField && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			names = append(names, textproto.CanonicalMIMEHeaderKey(name))
		}
	}
	return names
}

// Changing, adding or taking away a field that readers are shown, or programs act on, breaks the signature.
func TestEachFieldThatIsReadIsSigned(t *testing.T) {
	t.Parallel()
	made, zone := keys(t)
	values := map[string]string{
		"From": "a@a.example", "Sender": "s@a.example", "Reply-To": "r@a.example", "Subject": "hello", "Date": "Mon, 1 Jan 2024 00:00:00 +0000",
		"Message-ID": "<1@a.example>", "To": "b@b.example", "Cc": "c@b.example", "MIME-Version": "1.0", "Content-Type": "text/plain",
		"Content-Transfer-Encoding": "7bit", "Content-Disposition": "inline", "In-Reply-To": "<0@a.example>", "References": "<0@a.example>",
		"List-Id": "<l.a.example>", "List-Unsubscribe": "<https://a.example/>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"Auto-Submitted": "auto-generated",
	}
	var lines []string
	for name, value := range values {
		lines = append(lines, name+": "+value)
	}
	slices.Sort(lines)
	body := "\r\n\r\nbody\r\n"
	text := strings.Join(lines, "\r\n") + body
	fields, err := signing.Headers(made, namesOf(text), open(text))
	if err != nil {
		t.Fatal(err)
	}
	// holds is how many of the two signatures hold for a message.
	holds := func(text string) (n int) {
		for _, signature := range verify(t, string(fields)+text, zone) {
			if signature.Err == nil {
				n++
			}
		}
		return n
	}
	if holds(text) != 2 {
		t.Fatal("the message as it was signed is not believed")
	}
	if holds("X-Scanned: yes\r\n"+text) != 2 {
		t.Error("a field that nobody reads breaks the signature")
	}
	once := []string{"From", "Subject", "Date", "To", "Cc", "Reply-To", "Message-ID", "Content-Type", "MIME-Version"}
	for i, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\r\n") + body
		if holds(without) != 0 {
			t.Errorf("%s is taken away, and the signature holds", name)
		}
		if holds(strings.Replace(text, line, name+": other", 1)) != 0 {
			t.Errorf("%s is changed, and the signature holds", name)
		}
		if slices.Contains(once, name) && holds(name+": another\r\n"+text) != 0 {
			t.Errorf("another %s is added, and the signature holds", name)
		}
	}
	// A field that is not there when the message is signed cannot be added afterwards.
	bare := "From: a@a.example" + body
	if fields, err = signing.Headers(made, namesOf(bare), open(bare)); err != nil {
		t.Fatal(err)
	}
	for _, name := range once {
		if holds(name+": another\r\n"+bare) != 0 {
			t.Errorf("%s is added, and the signature holds", name)
		}
	}
}
