package host

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// A source of a secret without an end takes neither memory nor time: what is behind the bound is not read.
func TestASecretWithoutAnEndIsNotRead(t *testing.T) {
	t.Parallel()
	for _, reference := range []string{"file:/dev/zero", "command:cat /dev/zero"} {
		began := time.Now()
		_, err := readSecret(t.Context(), reference, adapter.Permission{Secrets: []string{reference}})
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", reference, err)
		}
		if took := time.Since(began); took >= secretTime {
			t.Errorf("%s: it took %s", reference, took)
		}
	}
	const reference = "command:echo open sesame"
	if got, err := readSecret(t.Context(), reference, adapter.Permission{Secrets: []string{reference}}); err != nil || got != "open sesame" {
		t.Errorf("the secret is %q, %v", got, err)
	}
}
