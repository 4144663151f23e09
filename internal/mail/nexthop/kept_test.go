package nexthop // Kept answers are not exported.

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Of answers so many are kept; the next one has all forgotten, so that a sender of many names does not fill the memory.
func TestFiftyThousandAnswersAreKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after int }{{0, 1}, {49_999, 50_000}, {50_000, 1}} {
		r := &Resolver{kept: make(map[question]answer)}
		for i := range c.before {
			r.kept[question{name: fmt.Sprintf("d%d.example.", i), kind: dns.TypeMX}] = answer{}
		}
		r.keep(question{name: "new.example.", kind: dns.TypeMX}, answer{exists: true, until: time.Now().Add(time.Hour)})
		if len(r.kept) != c.after || !r.kept[question{name: "new.example.", kind: dns.TypeMX}].exists {
			t.Errorf("with one more than %d there are %d, want %d", c.before, len(r.kept), c.after)
		}
	}
}
