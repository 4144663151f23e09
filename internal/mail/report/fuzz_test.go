package report_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/report"
)

// Texts of a sender, a peer and a next hop cannot add a field or a part to a report.
func FuzzReport(f *testing.F) {
	f.Add("a@a.example", "b@b.example", "rfc822;c@c.example", "no such user", "mx.b.example", "client.example", original)
	f.Add("a@a.example\r\nX: y", "b@b.example\r\n\r\nAction: delivered", "x;\n", "550\r\n\r\n--x", "m\x00x", "(", "no header at all")
	f.Fuzz(func(t *testing.T, to, final, orig, text, remote, helo, whole string) {
		r := sample(report.Failed)
		r.To, r.ReceivedFrom, r.Original = to, helo, strings.NewReader(whole)
		r.EnvelopeID = text
		r.Recipients = []report.Recipient{{Final: final, Original: orig, Status: "5.1.1", Text: text, Remote: remote, Code: 550}}
		r.HeadersOnly = len(whole)%2 == 0
		if strings.ContainsAny(whole, "\n") && strings.Contains(strings.ReplaceAll(whole, "\r\n", ""), "\n") {
			return // Bodies have CRLF alone.
		}
		got := parse(t, r)
		if len(got.parts) != 3 || len(got.groups) != 2 || got.groups[1].Get("Action") != "failed" || len(got.groups[1]["Action"]) != 1 {
			t.Errorf("the report has %d parts, and %d groups: %v", len(got.parts), len(got.groups), got.groups)
		}
		if got.header.Get("X") != "" || len(got.header["To"]) != 1 {
			t.Errorf("the header is %v", got.header)
		}
	})
}
