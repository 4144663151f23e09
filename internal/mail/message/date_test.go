package message_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Programs write days of the week in the language of their user, and some part the time with dots.
func TestDatesAreReadAsProgramsWriteThem(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"Mi, 17 Nov 2010 15:02:19 +0100":            "2010-11-17T14:02:19Z",
		"Mi., 17 Nov 2010 15:02:19 +0100":           "2010-11-17T14:02:19Z",
		"sáb, 17 Nov 2010 15:02:19 +0100":           "2010-11-17T14:02:19Z",
		"Wed, 17 Nov 2010 15.02.19 +0000":           "2010-11-17T15:02:19Z",
		"Wed, 17 Nov 2010 15:02:19.123 +0000":       "2010-11-17T15:02:19Z",
		"Wed, 17. Nov 2010 15:02 +0000":             "2010-11-17T15:02:00Z",
		"17 Nov 2010 15.02.19":                      "2010-11-17T15:02:19Z",
		"17 Nov 2010, 15:02:19":                     "2010-11-17T15:02:19Z",
		"17.11.2010 15:02:19":                       "",
		"17.11.10 15:02:19":                         "",
		"Wed, 17 Nov 2010 15. 02. 19 +0000":         "",
		"Wed, 17 Nov 2010 15.02 +0000":              "",
		"Mi, Mi, 17 Nov 2010 15:02:19 +0000 extra.": "2010-11-17T15:02:19Z",
		"Mi 17 Nov 2010 15:02:19 +0000":             "",
		"Mi,":                                       "",
		"Wed, 17 Nov 2010 15.02.19.04 +0000":        "2010-11-17T15:02:19Z",
		"Wed, 17 Nov 2010 15.02.99 +0000":           "",
	} {
		got := ""
		if date, isDate := message.ParseDate(written); isDate {
			got = date.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}
