package demo

import "testing"

// One file on the way becomes many messages, and a machine may be so busy that they are many for longer than the patience.
func TestARunIsGivenUpOnlyWhenNothingMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stands []standing // one after the other, and then the last again
		asked  int
	}{
		"what arrives moves":             {[]standing{{1, 0}, {30, 1}, {29, 2}, {30, 3}, {1, 4}, {0, 4}}, 6},
		"what is left moves":             {[]standing{{30, 0}, {29, 0}, {28, 0}, {0, 0}}, 4},
		"what comes and goes is no move": {[]standing{{30, 5}, {31, 5}, {30, 4}, {31, 5}}, 2},
	} {
		asked := 0
		s := stage{patience: 1} // a nanosecond, which is over when it is asked again
		err := s.await(t.Context(), func() (standing, error) {
			asked++
			return c.stands[min(asked, len(c.stands))-1], nil
		})
		if err != nil || asked != c.asked {
			t.Errorf("%s: asked %d times (%v), want %d", name, asked, err, c.asked)
		}
	}
}
