package governor

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var memory = Threshold{Resource: "memory", MediumAt: 72, HighAt: 75, MediumBelow: 73, NormalBelow: 71, HistoryPolls: 3}

func TestLevelsRiseAndFallAtDifferentValues(t *testing.T) {
	t.Parallel()
	var m Machine
	m.SetPolicy([]Threshold{memory}, nil)
	for i, step := range []struct {
		value float64
		want  Level
	}{
		{72, Normal},
		{72.1, Medium},
		{71, Medium},
		{70.9, Normal},
		{75.1, High},
		{73, High},
		{72.9, Medium},
		{75, Medium},
		{76, High},
		{70, Normal},
		{76, High},
		{72, Medium},
		{71.5, Medium},
		{71.5, Medium},
		{0, Normal},
	} {
		m.Poll(map[string]float64{"memory": step.value})
		if got := m.Level(); got != step.want {
			t.Errorf("step %d: %v gives %v, want %v", i, step.value, got, step.want)
		}
	}
}

func TestSomeActionsWaitUntilItHasLasted(t *testing.T) {
	t.Parallel()
	var m Machine
	m.SetPolicy([]Threshold{memory, {Resource: "disk", MediumAt: 1, HighAt: 2, MediumBelow: 1, NormalBelow: 1}}, []Action{
		{"memory", "tarpit", Medium, false},
		{"memory", "reject", Medium, true},
		{"memory", "stop", High, false},
		{"disk", "reject", High, false},
	})
	for i, step := range []struct {
		memory, disk float64
		want         []string
	}{
		{70, 0, nil},
		{74, 0, []string{"tarpit"}},
		{74, 0, []string{"tarpit"}},
		{74, 0, []string{"tarpit"}},
		{74, 0, []string{"reject", "tarpit"}},
		{70, 3, []string{"reject"}},
		{74, 0, []string{"tarpit"}},
		{76, 0, []string{"reject", "stop", "tarpit"}},
	} {
		m.Poll(map[string]float64{"memory": step.memory, "disk": step.disk})
		if got := m.Active(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}

// A resource that is not measured keeps its level, and a new policy keeps those of the resources that stay.
func TestLevelsOutlastSilenceAndANewPolicy(t *testing.T) {
	t.Parallel()
	var m Machine
	m.SetPolicy([]Threshold{memory}, nil)
	m.Poll(map[string]float64{"memory": 80})
	if changes := m.Poll(nil); len(changes) > 0 || m.Level() != High {
		t.Errorf("silence gives %v", changes)
	}
	wider := memory
	wider.HighAt, wider.MediumBelow = 90, 85
	m.SetPolicy([]Threshold{wider}, nil)
	if m.Level() != High {
		t.Error("a new policy forgets the level")
	}
	if changes := m.Poll(map[string]float64{"memory": 80}); len(changes) != 1 || changes[0].To != Medium {
		t.Errorf("the new thresholds give %v", changes)
	}
	m.SetPolicy(nil, nil)
	if m.Level() != Normal {
		t.Error("a resource that is gone is under pressure")
	}
}

// The level is always one that the measured value allows, changes only by crossing the threshold for that, and is reported exactly when it
// changes.
func TestLevelsFollowTheirThresholds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sorted := rapid.SliceOfN(rapid.Float64Range(0, 100), 4, 4).Draw(t, "thresholds")
		slices.Sort(sorted)
		// Either order of the two in the middle is one that the schema takes.
		mediumAt, mediumBelow := sorted[1], sorted[2]
		if rapid.Bool().Draw(t, "is swapped") {
			mediumAt, mediumBelow = mediumBelow, mediumAt
		}
		threshold := Threshold{
			Resource: "r", NormalBelow: sorted[0], MediumAt: mediumAt, MediumBelow: mediumBelow, HighAt: sorted[3],
			HistoryPolls: rapid.IntRange(0, 5).Draw(t, "history"),
		}
		var m Machine
		m.SetPolicy([]Threshold{threshold}, []Action{{"r", "soft", Medium, false}, {"r", "later", Medium, true}, {"r", "hard", High, false}})
		before, above := Normal, 0
		for _, value := range rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 40).Draw(t, "values") {
			changes := m.Poll(map[string]float64{"r": value})
			level := m.Level()
			if above++; level == Normal {
				above = 0
			}
			switch {
			case value > threshold.HighAt && level != High, value < threshold.NormalBelow && level != Normal:
				t.Fatalf("%v gives %v with %+v", value, level, threshold)
			case level > before && value <= threshold.MediumAt, level == High && before != High && value <= threshold.HighAt:
				t.Fatalf("%v raises %v to %v with %+v", value, before, level, threshold)
			case level < before && before == High && value >= threshold.MediumBelow, level == Normal && before != Normal && value >= threshold.NormalBelow:
				t.Fatalf("%v lowers %v to %v with %+v", value, before, level, threshold)
			case (len(changes) == 1) != (level != before):
				t.Fatalf("%v to %v reported as %v", before, level, changes)
			}
			active := m.Active()
			later := level == High || level == Medium && threshold.HistoryPolls > 0 && above > threshold.HistoryPolls
			if slices.Contains(active, "soft") != (level >= Medium) || slices.Contains(active, "hard") != (level == High) ||
				slices.Contains(active, "later") != later {
				t.Fatalf("%v after %d polls above Normal gives %v with %+v", level, above, active, threshold)
			}
			before = level
		}
	})
}

// Above the floor nobody is excepted; that ends where High does not begin again, not where it began.
func TestTheFloorIsBeyondHigh(t *testing.T) {
	t.Parallel()
	disk := Threshold{Resource: "disk", MediumAt: 80, HighAt: 90, MediumBelow: 85, NormalBelow: 70, FloorAt: 98}
	var m Machine
	m.SetPolicy([]Threshold{disk}, []Action{{"disk", "refuse", High, true}, {"disk", "refuse all", Floor, false}})
	for i, step := range []struct {
		value   float64
		want    Level
		actions int
	}{{97, High, 1}, {99, Floor, 2}, {91, Floor, 2}, {90, High, 1}, {84, Medium, 0}, {99, Floor, 2}, {60, Normal, 0}} {
		m.Poll(map[string]float64{"disk": step.value})
		if got := m.Level(); got != step.want || len(m.Active()) != step.actions {
			t.Errorf("step %d: %v gives %v and %v, want %v", i, step.value, got, m.Active(), step.want)
		}
	}
}
