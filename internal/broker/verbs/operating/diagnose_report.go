package operating

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// diagnosis is the output of diagnose; as JSON it is a stable format.
type diagnosis struct {
	Findings    []operate.Finding     `json:"findings"`
	Explanation []operate.Explanation `json:"explanation"` // of --conversation
}

// diagnosisReport reports findings, each once: people at once, programs at the end.
type diagnosisReport struct {
	diagnosis
	out  io.Writer
	json bool
	seen map[string]bool
}

func newDiagnosisReport(out io.Writer, json bool) *diagnosisReport {
	empty := diagnosis{Findings: []operate.Finding{}, Explanation: []operate.Explanation{}}
	return &diagnosisReport{diagnosis: empty, out: out, json: json, seen: map[string]bool{}}
}

// add takes what one check has found, and prints what is new if it is to be shown.
func (r *diagnosisReport) add(found []operate.Finding, isShown bool) error {
	for _, finding := range found {
		// Counts and times in the cause change from one check to the next; what cures it does not.
		key := strings.Join([]string{finding.Code, finding.ObjectKind, finding.ObjectName, cure(finding)}, "\x00")
		if r.seen[key] {
			continue
		}
		r.seen[key] = true
		if !isShown {
			continue
		}
		r.Findings = append(r.Findings, finding)
		if r.json {
			continue
		}
		if err := writeFinding(r.out, finding); err != nil {
			return err
		}
	}
	return nil
}

func cure(f operate.Finding) string {
	if f.Cure == nil {
		return ""
	}
	return *f.Cure
}

func writeFinding(out io.Writer, f operate.Finding) error {
	head := fmt.Sprintf("%s %s", f.Level, f.Code)
	if f.Part == operate.PartProblem {
		head = "PROBLEM " + f.Code
	}
	if f.ErrorNumber != nil {
		head += fmt.Sprintf(" (%d)", *f.ErrorNumber)
	}
	head += fmt.Sprintf("  %s %s", f.ObjectKind, verb.OneLine(f.ObjectName, 0))
	if f.Since != nil {
		head += "  since " + verb.Moment(f.Since)
	}
	if _, err := fmt.Fprintf(out, "%s\n  %s\n", head, verb.OneLine(f.Cause, 0)); err != nil {
		return err
	}
	if f.Cure == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, "  %s\n", verb.OneLine(cure(f), 0))
	return err
}

// conclude prints what is reported at the end.
func (r *diagnosisReport) conclude() error {
	if r.json {
		return verb.EncodeJSON(r.out, r.diagnosis)
	}
	for _, x := range r.Explanation {
		side := "both sides"
		if x.Side != nil {
			side = "the " + *x.Side
		}
		if _, err := fmt.Fprintf(r.out, "step %d, what %s sent: %s\n", x.Step, side, verb.OneLine(x.Answer, 0)); err != nil {
			return err
		}
	}
	text := "nothing found"
	if n := len(r.Findings); n > 0 {
		text = verb.Counted(n, "finding")
	}
	_, err := fmt.Fprintln(r.out, text)
	return err
}
