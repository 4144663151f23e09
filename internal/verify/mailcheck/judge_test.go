package mailcheck_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func accepted(recipients ...string) []mailcheck.Submission {
	return []mailcheck.Submission{{Key: "k", Sender: "s@a.example", Recipients: recipients, Hash: "h", Outcome: mailcheck.Accepted, Via: "SMTP"}}
}

func arrival(ending mailcheck.Ending, seconds float64) mailcheck.Arrival {
	return mailcheck.Arrival{Key: "k", Recipient: "x@b.example", Hash: "h", Place: "relay", Ending: ending, At: at(seconds), Ended: at(seconds)}
}

func report(seconds float64) mailcheck.Arrival {
	return mailcheck.Arrival{
		Recipient: "s@a.example", Report: &mailcheck.Report{Key: "k", Failed: []string{"X@b.example"}}, Place: "maildir", At: at(seconds),
	}
}

// Each promise has a history that breaks it and must be flagged, beside those that keep it.
func TestJudgeFindsWhatIsWrongAndNothingElse(t *testing.T) {
	t.Parallel()
	stored, acknowledged, unread, unanswered := mailcheck.Stored, mailcheck.Acknowledged, mailcheck.Unread, mailcheck.Unanswered
	changed, elsewhere, longOpen := arrival(stored, 1), arrival(stored, 1), arrival(acknowledged, 1)
	changed.Hash, elsewhere.Recipient, longOpen.Ended = "other", "y@b.example", at(60)
	idle := arrival(unread, 1)
	idle.Ended = at(5)
	rolledBack, unknown := accepted("x@b.example"), accepted("x@b.example")
	rolledBack[0].Outcome, unknown[0].Outcome = mailcheck.NotAccepted, mailcheck.Unknown
	killed := mailcheck.Faults{Killed: []time.Time{at(2)}}
	type arrivals = []mailcheck.Arrival
	for name, c := range map[string]struct {
		sent   []mailcheck.Submission
		came   arrivals
		faults mailcheck.Faults
		want   mailcheck.Findings
	}{
		"arrived":                         {sent: accepted("x@b.example"), came: arrivals{arrival(acknowledged, 1)}},
		"reported":                        {sent: accepted("x@b.example"), came: arrivals{report(1)}},
		"nowhere":                         {sent: accepted("x@b.example"), want: mailcheck.Findings{Lost: 1}},
		"at one of two":                   {sent: accepted("x@b.example", "z@b.example"), came: arrivals{arrival(stored, 1)}, want: mailcheck.Findings{Lost: 1}},
		"rolled back":                     {sent: rolledBack},
		"rolled back and there":           {sent: rolledBack, came: arrivals{arrival(stored, 1)}, want: mailcheck.Findings{NeverSent: 1}},
		"rolled back and reported":        {sent: rolledBack, came: arrivals{report(1)}, want: mailcheck.Findings{NeverSent: 1}},
		"unknown":                         {sent: unknown},
		"unknown and there":               {sent: unknown, came: arrivals{arrival(stored, 1)}},
		"unknown and there twice":         {sent: unknown, came: arrivals{arrival(stored, 1), arrival(stored, 2)}, want: mailcheck.Findings{Duplicated: 1}},
		"never submitted":                 {came: arrivals{arrival(stored, 1)}, want: mailcheck.Findings{NeverSent: 1}},
		"at somebody else":                {sent: accepted("x@b.example"), came: arrivals{arrival(stored, 1), elsewhere}, want: mailcheck.Findings{NeverSent: 1}},
		"changed":                         {sent: accepted("x@b.example"), came: arrivals{changed}, want: mailcheck.Findings{Changed: 1}},
		"stored twice":                    {sent: accepted("x@b.example"), came: arrivals{arrival(stored, 1), arrival(stored, 2)}, faults: killed, want: mailcheck.Findings{Duplicated: 1}},
		"twice":                           {sent: accepted("x@b.example"), came: arrivals{arrival(acknowledged, 1), arrival(acknowledged, 2)}, want: mailcheck.Findings{Duplicated: 1}},
		"twice after a cut":               {sent: accepted("x@b.example"), came: arrivals{arrival(unanswered, 1), arrival(acknowledged, 2)}, want: mailcheck.Findings{Uncertain: 1}},
		"twice after an unread reply":     {sent: accepted("x@b.example"), came: arrivals{arrival(unread, 1), arrival(acknowledged, 2)}, want: mailcheck.Findings{Uncertain: 1}},
		"twice after an idle connection":  {sent: accepted("x@b.example"), came: arrivals{idle, arrival(acknowledged, 9)}, want: mailcheck.Findings{Duplicated: 1}},
		"three times after one cut":       {sent: accepted("x@b.example"), came: arrivals{arrival(unanswered, 1), arrival(acknowledged, 2), arrival(acknowledged, 3)}, want: mailcheck.Findings{Uncertain: 1, Duplicated: 1}},
		"twice after a kill":              {sent: accepted("x@b.example"), came: arrivals{arrival(acknowledged, 1), arrival(acknowledged, 5)}, faults: killed, want: mailcheck.Findings{Unrecorded: 1}},
		"twice after a kill of another":   {sent: accepted("x@b.example"), came: arrivals{longOpen, arrival(acknowledged, 5)}, faults: killed, want: mailcheck.Findings{Duplicated: 1}},
		"twice long before a kill":        {sent: accepted("x@b.example"), came: arrivals{arrival(acknowledged, 1), arrival(acknowledged, 29)}, faults: mailcheck.Faults{Killed: []time.Time{at(28)}}, want: mailcheck.Findings{Duplicated: 1}},
		"twice while nothing is recorded": {sent: accepted("x@b.example"), came: arrivals{arrival(acknowledged, 1), arrival(acknowledged, 9)}, faults: mailcheck.Faults{Killed: []time.Time{at(8)}, Away: []mailcheck.Span{{From: at(2), To: at(7.5)}}}, want: mailcheck.Findings{Unrecorded: 1}},
		"arrived and reported":            {sent: accepted("x@b.example"), came: arrivals{arrival(stored, 1), report(2)}, want: mailcheck.Findings{Contradicts: 1}},
		"cut and reported":                {sent: accepted("x@b.example"), came: arrivals{arrival(unanswered, 1), report(2)}},
		"reported twice":                  {sent: accepted("x@b.example"), came: arrivals{report(1), report(2)}, want: mailcheck.Findings{Duplicated: 1}},
	} {
		got := mailcheck.Judge(c.sent, c.came, c.faults)
		if len(got.Examples) == 0 != got.Clean() {
			t.Errorf("%s: the examples are %q", name, got.Examples)
		}
		got = mailcheck.Findings{
			Lost: got.Lost, NeverSent: got.NeverSent, Duplicated: got.Duplicated, Changed: got.Changed, Contradicts: got.Contradicts,
			Uncertain: got.Uncertain, Unrecorded: got.Unrecorded,
		}
		got.Examples = nil
		if got.Lost != c.want.Lost || got.NeverSent != c.want.NeverSent || got.Duplicated != c.want.Duplicated || got.Changed != c.want.Changed ||
			got.Contradicts != c.want.Contradicts || got.Uncertain != c.want.Uncertain || got.Unrecorded != c.want.Unrecorded {
			t.Errorf("%s: found %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLettersAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	body := mailcheck.Body(rand.New(rand.NewPCG(1, 2)), 5000)
	letter := mailcheck.Letter("s1-1", "s@a.example", []string{"x@b.example", "y@b.example"}, body)
	key, hash, report, err := mailcheck.Read([]byte("Received: from somewhere\r\n" + letter))
	if err != nil || key != "s1-1" || hash != mailcheck.Hash(body) || report != nil {
		t.Errorf("read %q, %q, %v, %v", key, hash, report, err)
	}
	if _, other, _, _ := mailcheck.Read([]byte(letter + " ")); other == hash {
		t.Error("a blank more has the same hash")
	}
	quoted := "X-Letter: k\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\none =3D 1=\r\n, two\r\n"
	if _, hash, _, err = mailcheck.Read([]byte(quoted)); err != nil || hash != mailcheck.HashText("one = 1, two") {
		t.Errorf("read %q, %v", hash, err)
	}
}

func TestReportsAreRead(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(`From: <postmaster@hub.example>
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

Sorry.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; hub.example

Final-Recipient: rfc822; x@b.example
Action: failed
Status: 5.1.1

Final-Recipient: rfc822; late@b.example
Action: delayed
Status: 4.0.0

Final-Recipient: rfc822;y@b.example
Action: failed
Status: 5.1.1
--b
Content-Type: message/rfc822

From: <s@a.example>
X-Letter: s1-1

hello
--b--
`, "\n", "\r\n")
	_, _, report, err := mailcheck.Read([]byte(text))
	if err != nil || report == nil || report.Key != "s1-1" || strings.Join(report.Failed, " ") != "x@b.example y@b.example" {
		t.Errorf("read %+v, %v", report, err)
	}
}
