package demo

import "testing"

// The messages behind a cut have gone when nearly none of them wait any more, and not when nothing has arrived yet.
func TestCaughtUpIsWhenWhatWaitedHasGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waiting []int64 // one sample a second; the link is cut at 0 and whole again at 2
		want    float64
	}{
		"it goes step by step":           {[]int64{0, 500, 1000, 600, 20, 0}, 2},
		"it grows while links come back": {[]int64{0, 500, 900, 1000, 1000, 40}, 3},
		"the samples end before":         {[]int64{0, 500, 1000, 1000, 1000}, 2},
		"nothing waited":                 {[]int64{0, 0, 0, 0}, 0},
		"others wait afterwards":         {[]int64{0, 500, 1000, 10, 300, 0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var samples []FlowSample
			most := int64(0)
			for second, n := range test.waiting {
				samples = append(samples, FlowSample{Seconds: float64(second), Waiting: []int64{n}})
				most = max(most, n)
			}
			if got := caughtUpSeconds(samples, 2, most); got != test.want {
				t.Errorf("%v seconds, want %v", got, test.want)
			}
		})
	}
}
