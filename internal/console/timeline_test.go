package console

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/operate"
)

func TestTimelineHasALineForEachSideAndAMarkForEachMomentThatIsPast(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) *time.Time {
		moment := begun.Add(time.Duration(seconds) * time.Second)
		return &moment
	}
	events := []operate.TraceEvent{
		{At: at(0), Side: "initiator", Event: "begun"},
		{At: at(0), Side: "initiator", Event: "received"},
		{At: at(50), Side: "target", Event: "set aside"},
		{At: at(100), Side: "initiator", Event: "state"},
		{Side: "target", Event: "message not due"},
		{At: at(1_000_000), Side: "target", Event: "lifetime ends"},
	}
	drawn := drawTimeline(events, begun.Add(time.Hour))
	if drawn == nil || len(drawn.Lanes) != 2 || len(drawn.Lanes[0].Marks) != 3 || len(drawn.Lanes[1].Marks) != 1 {
		t.Fatalf("drawn is %+v", drawn)
	}
	first, target := drawn.Lanes[0].Marks, drawn.Lanes[1].Marks[0]
	if first[0].X != laneStart || first[1].X != laneStart+marksApart || first[2].X != laneEnd || target.X != (laneStart+laneEnd)/2 || target.Class != "bad" {
		t.Errorf("the marks are %+v and %+v", first, target)
	}
	if drawTimeline(events[:2], begun.Add(time.Hour)) != nil {
		t.Error("moments of one time are drawn")
	}
}
