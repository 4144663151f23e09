package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/measure/demo"
	measureverbs "github.com/parley-broker/parley/internal/measure/verbs"
	"github.com/parley-broker/parley/internal/verb"
)

// A demo that found something wrong reports it in full, and ends with exit code 1.
func TestDemoThatFailedIsReportedAndEndsWithOne(t *testing.T) {
	t.Parallel()
	for _, isJSON := range []bool{false, true} {
		var out, errOut bytes.Buffer
		a := &verb.App{Stdout: &out, Stderr: &errOut, VerbReached: true}
		command := newRootCommand(a) // sets what its flags stand for
		a.JSON = isJSON
		result := demo.Result{
			Findings:      demo.Findings{MessagesSent: 2, MessagesReceived: 1, Lost: 1, Examples: []string{"Message 2 did not arrive."}},
			ReadersKilled: 1,
		}
		if code := a.Report(command, measureverbs.ReportDemo(a, &result, "", errors.New("messages were lost"))); code != 1 {
			t.Errorf("the exit code is %d", code)
		}
		if !strings.Contains(out.String(), "Message 2 did not arrive.") {
			t.Errorf("standard output does not say so: %s", &out)
		}
		if isJSON {
			var object struct{ Passed, Lost any }
			if err := json.Unmarshal(out.Bytes(), &object); err != nil || object.Passed != false || object.Lost != 1.0 {
				t.Errorf("%v: %s", err, &out)
			}
		} else if !strings.Contains(out.String(), "Failed: 1 lost.") {
			t.Errorf("no verdict in %s", &out)
		}
	}
}
