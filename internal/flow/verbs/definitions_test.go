package verbs

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/verb"
)

// A change within a long value is seen: the values are shown from a little before the place at which they begin to differ.
func TestAChangeWithinALongValueIsSeen(t *testing.T) {
	t.Parallel()
	same := strings.Repeat(`{"set": "ä"}, `, 20)
	was, is := changed(same+`{"delay": "1 hour"}`, same+`{"delay": "2 hours"}`)
	was, is = verb.OneLine(was, verb.BodyWidth), verb.OneLine(is, verb.BodyWidth)
	if !strings.HasPrefix(was, "…") || !strings.HasSuffix(was, `{"delay": "1 hour"}`) || !strings.HasSuffix(is, `{"delay": "2 hours"}`) {
		t.Errorf("shown are %s and %s", was, is)
	}
	for _, c := range [][2]string{{`"1 hour"`, `"2 hours"`}, {"null", same}, {same, "null"}} {
		if was, is := changed(c[0], c[1]); was != c[0] || is != c[1] {
			t.Errorf("shown are %s and %s of %q", was, is, c)
		}
	}
}
