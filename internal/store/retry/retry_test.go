package retry_test

import (
	"testing"
	"time"

	retrystore "github.com/parley-broker/parley/internal/store/retry"
	"github.com/parley-broker/parley/parleytest"
)

func TestRetryPoliciesAreAsked(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if next, ok, err := retrystore.Next(t.Context(), pool, "default", 1, time.Now()); !ok || err != nil || time.Until(next) > 2*time.Minute {
		t.Errorf("the first attempt is at %v, %v, %v", next, ok, err)
	}
	if _, ok, err := retrystore.Next(t.Context(), pool, "default", 1, time.Now().Add(-72*time.Hour)); ok || err != nil {
		t.Errorf("after its time: %v, %v", ok, err)
	}
	if _, _, err := retrystore.Next(t.Context(), pool, "none", 1, time.Time{}); err == nil {
		t.Error("a policy that there is not")
	}
}
