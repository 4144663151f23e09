package console

import (
	"strings"
	"time"

	"github.com/parley-broker/parley/operate"
)

// The picture of a conversation's life: a line for each side, and a mark for each moment. The server draws it, so that it is there
// without a script.
const (
	timelineWidth = 1000
	laneHeight    = 34
	laneStart     = 100
	laneEnd       = timelineWidth - 20
	marksApart    = 9
)

// timeline is such a picture; zero when there is too little to draw.
type timeline struct {
	Width, Height, Start, End int
	From, To                  string
	Lanes                     []lane
}

// lane is the line of a side.
type lane struct {
	Side  string
	Y     int
	Marks []mark
}

// mark is a moment.
type mark struct {
	X           int
	Class, Text string
}

// drawTimeline places the moments that are past by their time. Moments of a side that would hide each other stand side by side.
func drawTimeline(events []operate.TraceEvent, now time.Time) *timeline {
	var first, last time.Time
	count := 0
	for _, one := range events {
		if one.At == nil || one.At.After(now) {
			continue
		}
		count++
		if first.IsZero() || one.At.Before(first) {
			first = *one.At
		}
		if one.At.After(last) {
			last = *one.At
		}
	}
	if count < 2 || !last.After(first) {
		return nil
	}
	drawn := &timeline{Width: timelineWidth, Start: laneStart, End: laneEnd, From: formatMoment(&first), To: formatMoment(&last)}
	places := map[string]int{}
	for _, one := range events {
		if one.At == nil || one.At.After(now) {
			continue
		}
		place, ok := places[one.Side]
		if !ok {
			place = len(drawn.Lanes)
			places[one.Side] = place
			drawn.Lanes = append(drawn.Lanes, lane{Side: one.Side, Y: laneHeight/2 + place*laneHeight})
		}
		line := &drawn.Lanes[place]
		x := laneStart + int(float64(laneEnd-laneStart)*one.At.Sub(first).Seconds()/last.Sub(first).Seconds())
		if n := len(line.Marks); n > 0 && x < line.Marks[n-1].X+marksApart {
			x = min(line.Marks[n-1].X+marksApart, laneEnd)
		}
		line.Marks = append(line.Marks, mark{X: x, Class: markClass(one.Event), Text: markText(one)})
	}
	drawn.Height = len(drawn.Lanes)*laneHeight + laneHeight/2
	return drawn
}

// markClass is the class of a moment in the styles.
func markClass(event string) string {
	switch event {
	case "reader failed", "set aside":
		return "bad"
	case "group locked", "message waits", "message in transit":
		return "warning"
	}
	return "good"
}

func markText(event operate.TraceEvent) string {
	parts := []string{formatMoment(event.At), event.Event}
	for _, more := range []*string{event.MessageTypeName, event.Detail} {
		if more != nil {
			parts = append(parts, *more)
		}
	}
	return strings.Join(parts, ", ")
}
