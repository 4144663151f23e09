package notifier

import (
	"testing"
	"time"
)

func TestSendersAreAskedNoMoreWhenNotificationsKeepComing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		notifications int
		busy          time.Duration
		isPolling     bool
		want          bool
	}{
		{"many, and busy for long", notificationsMax + 1, busyTime + 1, false, true},
		{"not so many", notificationsMax, busyTime + 1, false, false},
		{"a short burst", notificationsMax + 1, busyTime, false, false},
		{"polling already", notificationsMax + 1, busyTime + 1, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var d Demand
			now := time.Now()
			for range 10 {
				d.Notified(now.Add(-time.Hour), false)
			}
			d.Notified(now, true) // the count begins anew
			for range test.notifications {
				d.Notified(now, false)
			}
			if test.isPolling {
				d.Poll()
			}
			if got := d.IsTooHigh(now.Add(test.busy)); got != test.want {
				t.Errorf("it is too high: %v, want %v", got, test.want)
			}
		})
	}
}

// A sender that checked just before it was asked does not notify, so scans follow each time senders are asked anew.
func TestScansFollowWheneverSendersAreAskedAnew(t *testing.T) {
	t.Parallel()
	var d Demand
	now := time.Now()
	if d.IsAsked(now) || d.IsWatched(now) {
		t.Error("nobody was asked yet")
	}
	if !d.Asked(now, AskTime) || !d.IsWatched(now.Add(watchTime-1)) || d.IsWatched(now.Add(watchTime)) {
		t.Error("the first time is not followed by scans")
	}
	if !d.IsAsked(now.Add(AskTime-time.Second-1)) || d.IsAsked(now.Add(AskTime-time.Second)) {
		t.Error("senders are not counted on until a second before the end")
	}
	renewed := now.Add(RenewInterval)
	if d.Asked(renewed, AskTime) || d.IsWatched(renewed) || !d.IsAsked(now.Add(AskTime)) {
		t.Error("a renewal is taken for a first time, or does not renew")
	}
	if late := renewed.Add(AskTime); !d.Asked(late, AskTime) || !d.IsWatched(late) {
		t.Error("a renewal that came too late is not followed by scans")
	}
	d.Poll()
	d.EndPolling()
	if d.IsPolling() || d.IsAsked(renewed) || !d.Asked(renewed, AskTime) {
		t.Error("after polling senders are not asked anew")
	}
}
