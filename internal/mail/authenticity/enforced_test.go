package authenticity_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/mail/authenticity"
)

// verifyEnforced verifies a message from a peer that no domain allows, and follows what its domain says.
func verifyEnforced(t *testing.T, v *authenticity.Verifier, text string) (authenticity.Verdict, results) {
	t.Helper()
	return verify(t, v, "198.51.100.1", "a@sender.example", text, authenticity.Checks{DMARC: authenticity.Enforce})
}
