package notifier

import (
	"slices"
	"testing"
)

// taken gives the ids that wait in a subscription, and whether it missed something.
func taken(s *Subscription) (ids []int32, missed bool) {
	for len(s.ids) > 0 {
		ids = append(ids, <-s.IDs)
	}
	return ids, isNotified(s.Missed)
}

func isNotified(w WakeUp) bool {
	select {
	case <-w:
		return true
	default:
		return false
	}
}

func expect(t *testing.T, who string, s *Subscription, want ...int32) {
	t.Helper()
	if ids, missed := taken(s); !slices.Equal(ids, want) || missed {
		t.Errorf("%s takes %v (missed: %v), want %v", who, ids, missed, want)
	}
}

func TestAnIDIsForItsOwnerAndOneOfNobodyForAll(t *testing.T) {
	t.Parallel()
	n := New(Config{})
	first, second, named := n.Subscribe(10), n.Subscribe(10), n.Subscribe(0)
	for _, s := range []*Subscription{first, second, named} {
		if _, missed := taken(s); !missed {
			t.Error("a subscription that begins has missed nothing")
		}
	}
	first.Own(1)
	for _, payload := range []string{"1", "2", "of somebody else", "99999999999", ""} {
		n.notify(payload)
	}
	expect(t, "the owner", first, 1, 2)
	expect(t, "another one", second, 2)
	expect(t, "one without ids", named)
	first.Disown(1)
	n.notify("1")
	expect(t, "who owned it", first, 1)
	expect(t, "another one", second, 1)
	second.Own(1)
	first.Disown(1)
	n.notify("1")
	expect(t, "who owns it no more", first)
	expect(t, "who owns it now", second, 1)
	second.Close()
	n.notify("1")
	expect(t, "who is left", first, 1)
	expect(t, "a closed one", second)
}

func TestAPayloadByNameWakesWhoeverNamedItAndIsNoID(t *testing.T) {
	t.Parallel()
	n := New(Config{})
	one, other, ids := n.Subscribe(0), n.Subscribe(0), n.Subscribe(10)
	<-ids.Missed
	first, second := one.On("0", NewWakeUp()), other.On("0", NewWakeUp())
	n.notify("0")
	n.notify("0")
	if !isNotified(first) || !isNotified(second) {
		t.Error("one of those who named it is not woken")
	}
	if isNotified(first) {
		t.Error("two notifications are not merged")
	}
	expect(t, "who takes ids", ids)
	one.Off("0")
	other.Off("0")
	n.notify("0")
	if isNotified(first) || isNotified(second) {
		t.Error("it is woken though it is off")
	}
}

func TestIDsThatFindNoPlaceAreMissed(t *testing.T) {
	t.Parallel()
	n := New(Config{})
	s := n.Subscribe(1)
	<-s.Missed
	n.notify("1")
	expect(t, "with a place", s, 1)
	n.notify("1")
	n.notify("2")
	if ids, missed := taken(s); !slices.Equal(ids, []int32{1}) || !missed {
		t.Errorf("it takes %v, missed: %v", ids, missed)
	}
	n.missed()
	if _, missed := taken(s); !missed {
		t.Error("nothing is missed when listening begins")
	}
}
