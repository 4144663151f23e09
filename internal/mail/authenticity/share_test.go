package authenticity // The permission that is drawn is given, which no outsider can do.

import (
	"testing"

	"github.com/emersion/go-msgauth/dmarc"
)

// Of a hundred messages the policy counts for as many as the record says (RFC 7489 section 6.3).
func TestPolicyCountsForItsShare(t *testing.T) {
	t.Parallel()
	for percent, want := range map[int]int{0: 0, 1: 1, 50: 50, 99: 99, 100: 100} {
		applied := 0
		for drawn := range 100 {
			switch got := sampled(&percent, dmarc.PolicyReject, drawn); got {
			case dmarc.PolicyReject:
				applied++
			case dmarc.PolicyQuarantine:
			default:
				t.Errorf("of a share of %d, %d drawn is %q", percent, drawn, got)
			}
		}
		if applied != want {
			t.Errorf("a share of %d is applied to %d of 100", percent, applied)
		}
	}
}
