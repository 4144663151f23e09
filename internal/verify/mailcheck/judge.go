package mailcheck

import (
	"fmt"
	"slices"
	"strings"
)

// examplesMax bounds the examples of findings.
const examplesMax = 20

// Findings are the findings of the judge. The first group counts letters and recipients. The second counts repeats that a fault explains;
// they are allowed. The third counts violations.
type Findings struct {
	Submitted   int `json:"submitted"`
	Accepted    int `json:"accepted"`
	NotAccepted int `json:"not_accepted"`
	Unknown     int `json:"unknown"`
	// Recipients are those of accepted letters; each is among Arrived or Reported.
	Recipients int `json:"recipients"`
	Arrived    int `json:"arrived"`
	Reported   int `json:"reported"`

	// Uncertain counts arrivals that came again because the connection of the one before died between the final dot and the reply.
	Uncertain int `json:"uncertain_repeats"`
	// Unrecorded counts arrivals that came again because the process was killed before it had recorded the reply.
	Unrecorded int `json:"unrecorded_repeats"`

	Lost        int `json:"lost"`
	NeverSent   int `json:"never_sent"`
	Duplicated  int `json:"duplicated"`
	Changed     int `json:"changed"`
	Contradicts int `json:"contradicting_reports"`

	Examples []string `json:"examples"`
}

// Clean reports whether there is no violation.
func (f *Findings) Clean() bool {
	return f.Lost+f.NeverSent+f.Duplicated+f.Changed+f.Contradicts == 0
}

// place names a letter at a recipient, or a report about one.
type place struct{ key, recipient string }

type judge struct {
	Findings
	faults   Faults
	letters  map[string]Submission
	arrivals map[place][]Arrival
	reports  map[place][]Arrival
}

// Judge compares what was submitted with what arrived.
func Judge(submissions []Submission, arrivals []Arrival, faults Faults) Findings {
	j := &judge{
		faults: faults, letters: make(map[string]Submission, len(submissions)),
		arrivals: make(map[place][]Arrival), reports: make(map[place][]Arrival),
	}
	for _, s := range submissions {
		j.letters[s.Key] = s
	}
	for _, a := range arrivals {
		if a.Report == nil {
			at := place{a.Key, strings.ToLower(a.Recipient)}
			j.arrivals[at] = append(j.arrivals[at], a)
			continue
		}
		for _, failed := range a.Report.Failed {
			about := place{a.Report.Key, strings.ToLower(failed)}
			j.reports[about] = append(j.reports[about], a)
		}
	}
	for _, s := range submissions {
		j.submission(s)
	}
	for at, came := range j.arrivals {
		j.arrived(at, came)
	}
	for about, came := range j.reports {
		j.reported(about, came)
	}
	slices.Sort(j.Examples)
	return j.Findings
}

func (j *judge) example(format string, arguments ...any) {
	if len(j.Examples) < examplesMax {
		j.Examples = append(j.Examples, fmt.Sprintf(format, arguments...))
	}
}

// submission counts a letter, and each of its recipients as arrived, reported or lost.
func (j *judge) submission(s Submission) {
	j.Submitted++
	switch s.Outcome {
	case NotAccepted:
		j.NotAccepted++
		return
	case Unknown:
		j.Unknown++
		return
	case Accepted:
		j.Accepted++
	}
	for _, recipient := range s.Recipients {
		at := place{s.Key, strings.ToLower(recipient)}
		j.Recipients++
		switch {
		case len(j.arrivals[at]) > 0:
			j.Arrived++
		case len(j.reports[at]) > 0:
			j.Reported++
		default:
			j.Lost++
			j.example("letter %s, accepted by %s, is not at %s, and nothing was reported", s.Key, s.Via, recipient)
		}
	}
}

// belongs reports whether a letter was sent to a recipient.
func (j *judge) belongs(at place) bool {
	s, known := j.letters[at.key]
	return known && s.Outcome != NotAccepted &&
		slices.ContainsFunc(s.Recipients, func(r string) bool { return strings.EqualFold(r, at.recipient) })
}

func (j *judge) arrived(at place, came []Arrival) {
	if !j.belongs(at) {
		j.NeverSent++
		j.example("letter %q is at %s in %s, and was not sent there (%s)", at.key, at.recipient, came[0].Place, j.letters[at.key].Via)
		return
	}
	for _, a := range came {
		if a.Hash != j.letters[at.key].Hash {
			j.Changed++
			j.example("letter %s is changed at %s in %s", at.key, at.recipient, a.Place)
		}
	}
	j.repeats(came, "letter "+at.key+" at "+at.recipient)
}

// reported judges the reports about one recipient of one letter: one report at most, and none when the letter arrived and was acknowledged.
func (j *judge) reported(about place, came []Arrival) {
	if !j.belongs(about) {
		j.NeverSent++
		j.example("a report is about letter %q to %s, which was not sent", about.key, about.recipient)
		return
	}
	j.repeats(came, "report of letter "+about.key+" to "+about.recipient)
	for _, a := range j.arrivals[about] {
		if a.Ending == Stored || a.Ending == Acknowledged && !j.faults.explain(a) {
			j.Contradicts++
			j.example("letter %s arrived at %s, and was reported as failed", about.key, about.recipient)
		}
	}
}

// repeats judges each arrival after the first by the ending of the arrival before it.
func (j *judge) repeats(came []Arrival, what string) {
	slices.SortStableFunc(came, func(a, b Arrival) int { return a.At.Compare(b.At) })
	for i, before := range came[:len(came)-1] {
		again := came[i+1]
		switch {
		case before.Ending == Unanswered, before.Ending == Unread && before.Ended.Sub(before.At) <= reading:
			j.Uncertain++
		case before.Ending != Stored && j.faults.explain(before):
			j.Unrecorded++
		default:
			j.Duplicated++
			j.example("%s came twice: in %s at %s (%s, its connection ended at %s) and in %s at %s", what, before.Place,
				before.At.Format("15:04:05.000"), before.Ending, before.Ended.Format("15:04:05.000"), again.Place, again.At.Format("15:04:05.000"))
		}
	}
}

// String gives the name of an ending.
func (e Ending) String() string {
	return [...]string{"stored", "acknowledged", "unread", "unanswered"}[e]
}
