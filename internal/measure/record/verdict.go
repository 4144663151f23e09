package record

import (
	"fmt"
	"slices"
)

// Grade is how a run ended.
type Grade string

// The grades, from the best to the worst. A run whose figures say nothing of the broker is invalid.
const (
	Pass     Grade = "Pass"
	Warnings Grade = "Pass with warnings"
	Fail     Grade = "Fail"
	Invalid  Grade = "Invalid"
)

// order is that of the grades: a worse one replaces a better one.
var order = []Grade{Pass, Warnings, Fail, Invalid}

// Verdict is the grade of a run with its grounds.
type Verdict struct {
	Grade   Grade    `json:"grade"`
	Reasons []string `json:"reasons,omitempty"`
}

// Passed reports whether the run did what it has to do.
func (v Verdict) Passed() bool { return v.Grade == Pass || v.Grade == Warnings }

// Lower makes the grade at most this one, for a reason.
func (v *Verdict) Lower(to Grade, reason string, args ...any) {
	if slices.Index(order, to) > slices.Index(order, v.Grade) {
		v.Grade = to
	}
	v.Reasons = append(v.Reasons, fmt.Sprintf(reason, args...))
}

// Count is the unit of figures that count messages.
const Count = "messages"

// Neighbours is the name of the check of what others do on the machine; its value is percent of the processors.
const Neighbours = "neighbours"

// crowded is the percentage from which on a limit that is missed says nothing.
const crowded = 50

// Noisy is the spread from which on a figure of several runs does not say much.
const Noisy = 0.25

// Conclude gives the figures limits of other origin, by their names, and adds to the verdict what every scenario has.
func (h *Head) Conclude(limits map[string]Limit) {
	for i, figure := range h.Figures {
		if limit, is := limits[figure.Name]; is {
			h.Figures[i].Limit = limit
		}
	}
	verdict := Judge(h.Setup, h.Figures)
	if h.Verdict != nil {
		for _, reason := range h.Verdict.Reasons {
			verdict.Lower(h.Verdict.Grade, "%s", reason)
		}
	}
	h.Verdict = verdict
}

// Judge gives the verdict of what every scenario has: checks of the set-up, limits of figures, spreads.
func Judge(checks []Check, figures []Figure) *Verdict {
	v := &Verdict{Grade: Pass}
	missed := false // a limit of speed; a message that is lost is lost on every machine
	for _, f := range figures {
		if f.Keeps() {
			continue
		}
		bound, limit := "above", f.AtLeast
		if f.AtMost > 0 && f.Value >= f.AtMost {
			bound, limit = "below", f.AtMost
		}
		v.Lower(Fail, "%s is %s, and has to be %s %s", f.Name, Text(f.Value, f.Unit), bound, Text(limit, f.Unit))
		missed = missed || f.Unit != Count
	}
	for _, check := range checks {
		if missed && check.Name == Neighbours && check.Value > crowded {
			v.Lower(Invalid, "others used %.0f%% of the processors before it began: what is too slow says nothing of this machine", check.Value)
		}
	}
	for _, check := range checks {
		if check.State == Warning {
			v.Lower(Warnings, "%s: %s", check.Name, check.Text)
		}
	}
	var noisy []string
	for _, f := range figures {
		if f.Spread > Noisy {
			noisy = append(noisy, f.Name)
		}
	}
	if len(noisy) > 0 {
		v.Lower(Warnings, "the runs of %d of %d figures lie more than %.0f%% apart, first of all of %s: measure again on an idle machine",
			len(noisy), len(figures), 100*Noisy, noisy[0])
	}
	return v
}
