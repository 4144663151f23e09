package backoff

import (
	"testing"
	"time"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestWorkRestsTwiceAsLongAsItTookAndNotAtAllWhenItHasBeenIdle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ took, since, want int }{
		{2, 0, 18},
		{10, 0, 20},
		{10, 15, 5},
		{30, 0, 60},
		{500, 0, 100},
		{2, 18, 0},
		{500, 100, 0},
	} {
		if got := Rest(ms(c.took), ms(c.since), ms(20)); got != ms(c.want) {
			t.Errorf("after %d ms of work %d ms ago it rests %v, want %d ms", c.took, c.since, got, c.want)
		}
	}
}
