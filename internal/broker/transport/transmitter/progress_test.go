package transmitter

import (
	"testing"
	"time"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// A conversation whose far side expects the same again and again would be sent for ever, and keep its place in the window.
func TestAConversationWithoutProgressIsLeft(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{run(1, 0, 1, 10)})
	for n := range retriesMax {
		if len(w.left) != 0 {
			t.Fatalf("it is left after %d answers", n)
		}
		pieces := w.compose(100, 1<<20, time.Now())
		if len(pieces) != 1 {
			t.Fatalf("answer %d: %d pieces travel", n, len(pieces))
		}
		w.answer(pieces, []transportstore.Result{{Outcome: transportstore.Expected, Next: 0}}, time.Now())
		w.recall(time.Now().Add(time.Hour))
	}
	if len(w.left) != 1 || len(w.conversations) != 0 {
		t.Errorf("after %d answers %d conversations are left, %d are in the window", retriesMax, len(w.left), len(w.conversations))
	}
	if again := w.compose(100, 1<<20, time.Now()); len(again) != 0 {
		t.Errorf("it travels again: %+v", again)
	}
}
