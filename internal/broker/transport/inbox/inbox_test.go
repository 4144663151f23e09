package inbox

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport"
)

func TestIdentityOfAPeerIsItsKeyAndTheNameThatAnAuthorityVouchesFor(t *testing.T) {
	t.Parallel()
	for want, passage := range map[string]transport.Passage{
		"":                       {},
		"peer:a1":                {Identity: "a1"},
		"peer:a1 named one.test": {Identity: "a1", Name: "one.test"},
	} {
		if got := peer(passage); got != want {
			t.Errorf("%+v is %q, want %q", passage, got, want)
		}
	}
	if got := peer(transport.Passage{Name: "one.test"}); got != "" {
		t.Errorf("a name without a key is %q", got)
	}
}
