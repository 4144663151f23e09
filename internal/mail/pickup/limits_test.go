package pickup

import (
	"strings"
	"testing"
	"time"
)

// The limits that hold where an administrator sets none are those of the documentation (docs/mail/receiving.md).
func TestLimitsThatHoldUnlessOthersAreSet(t *testing.T) {
	t.Parallel()
	type limits struct {
		poll                          time.Duration
		perMinute, header, recipients int
		message                       int64
	}
	for _, c := range []struct {
		name  string
		given Folder
		want  limits
	}{
		{"pickup", Folder{}, limits{5 * time.Second, 100, 65536, 100, 37748736}},
		{"replay, with as many recipients as a file has", Folder{IsReplay: true}, limits{5 * time.Second, 100, 65536, 0, 37748736}},
		{
			"others",
			Folder{Poll: time.Minute, PerMinute: 7, HeaderBytes: 8, Recipients: 9, MessageBytes: 10, IsReplay: true},
			limits{time.Minute, 7, 8, 9, 10},
		},
	} {
		f := &c.given
		f.setDefaults()
		if got := (limits{f.Poll, f.PerMinute, f.HeaderBytes, f.Recipients, f.MessageBytes}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A minute begins with its first file, and the next one no earlier than a minute after it.
func TestFilesOfAMinuteAreBounded(t *testing.T) {
	t.Parallel()
	f, began := &Folder{PerMinute: 2}, time.Unix(1e9, 0)
	for i, c := range []struct {
		at   time.Duration
		want bool
	}{
		{0, true},
		{30 * time.Second, true},
		{30 * time.Second, false},
		{time.Minute - 1, false},
		{time.Minute, true},
		{time.Minute, true},
		{2*time.Minute - 1, false},
		{time.Hour, true},
	} {
		if got := f.mayTake(began.Add(c.at)); got != c.want {
			t.Errorf("file %d, after %v: %v", i, c.at, got)
		}
	}
}

// Each limit holds up to its last byte and recipient.
func TestEachLimitHoldsToItsEnd(t *testing.T) {
	t.Parallel()
	const header = "From: a@b\nTo: c@d\nX: "
	filled := func(length int) string { return header + strings.Repeat("x", length-len(header)-2*3) + "\n\n" } // a line end has two bytes
	for _, c := range []struct{ name, text, want string }{
		{"a header of 500 bytes", filled(500) + "x", "submitted"},
		{"a header of 501 bytes", filled(501) + "x", "set aside"},
		{"a message of 2,000 bytes", "From: a@b\nTo: c@d\n\nx" + strings.Repeat("x\n", 990), "submitted"},
		{"a message of 2,001 bytes", "From: a@b\nTo: c@d\n\nxx" + strings.Repeat("x\n", 990), "refused 5.3.4"},
		{"three recipients", "From: a@b\nTo: c@d, e@f, g@h\n\nx", "submitted"},
		{"four recipients", "From: a@b\nTo: c@d, e@f, g@h, i@j\n\nx", "refused 5.5.3"},
	} {
		f, s := newFolder(t, false)
		f.HeaderBytes, f.MessageBytes, f.Recipients = 500, 2000, 3
		f.put(t, "a.eml", c.text)
		f.poll(t)
		got := "set aside"
		if len(s.got) == 1 {
			if got = "submitted"; s.got[0].Refusal.Status != "" {
				got = "refused " + s.got[0].Refusal.Status
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
