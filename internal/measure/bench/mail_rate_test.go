package bench // The search is not exported.

import (
	"math"
	"testing"
)

func TestTheSearchEndsCloseToTheHighestRateThatIsSustained(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0, 90, 100, 333, 1000} {
		tried := 0
		got, err := searchRate(100, 3, func(rate float64) (bool, error) {
			tried++
			return rate <= limit, nil
		})
		// Between a rate and its double three halvings leave an eighth of the lower.
		if err != nil || got > limit || limit-got > max(12.5, limit/8) || tried > 10 {
			t.Errorf("of %g a second it finds %g after %d rates, %v", limit, got, tried, err)
		}
	}
}

func TestARateIsSustainedWhenAllIsReceivedAndCompleted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts steadyCounts
		want   bool
	}{
		{steadyCounts{5000, 5000, 5000}, true},
		{steadyCounts{5000, 4880, 4881}, true},
		{steadyCounts{5000, 4870, 5000}, false},
		{steadyCounts{5000, 5000, 4870}, false},
	} {
		if got := c.counts.isStable(20); got != c.want {
			t.Errorf("%+v is sustained: %v", c.counts, got)
		}
	}
}

func TestMailServerSettingsHaveTheCacheThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]string{0: "1024MB", 64: "64MB"} {
		if got := mailServerSettings(asked)["shared_buffers"]; got != want {
			t.Errorf("for %d it is %s, want %s", asked, got, want)
		}
	}
}

func TestASteadyMessageHasTheSizeOfItsLoad(t *testing.T) {
	t.Parallel()
	for _, size := range []int{mail25KB, mail57KB, mail80KB} {
		if got := len(steadyMessage(size)); math.Abs(float64(got-size)) > 80 {
			t.Errorf("it has %d bytes, want %d", got, size)
		}
	}
}
