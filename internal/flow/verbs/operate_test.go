package verbs

import (
	"maps"
	"testing"
	"time"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// A message that is resumed and fails again is suspended anew while the command goes on: it would be resumed for ever.
func TestAnOperationLeavesMessagesAloneThatWereSuspendedAfterItBegan(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	page := []flowstore.Suspended{
		{SuspensionID: 1, SuspendedAt: begin.Add(-time.Hour)}, {SuspensionID: 2, SuspendedAt: begin}, {SuspensionID: 3, SuspendedAt: begin.Add(time.Microsecond)},
	}
	kept := before(page, begin)
	if len(kept) != 2 || kept[0].SuspensionID != 1 || kept[1].SuspensionID != 2 {
		t.Errorf("kept %+v", kept)
	}
}

func TestPropertiesOfTheCommandLineAreCutBehindTheirLocalName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"urn:p#Po=1": "urn:p#Po", "http://x.example/?a=b#Po=1": "http://x.example/?a=b#Po", "SourceFileName=1": "SourceFileName",
	} {
		if got, err := readProperties("property", []string{given}); err != nil || !maps.Equal(got, map[string]string{want: "1"}) {
			t.Errorf("%s is read as %v, %v", given, got, err)
		}
	}
	if got, err := readProperties("property", []string{"urn:p#Po=a=b#c", "urn:p#Empty="}); err != nil || got["urn:p#Po"] != "a=b#c" || got["urn:p#Empty"] != "" {
		t.Errorf("read as %v, %v", got, err)
	}
	for _, wrong := range [][]string{{"urn:p#Po"}, {"=1"}, {""}, {"urn:p#Po=1", "urn:p#Po=2"}} {
		if got, err := readProperties("property", wrong); err == nil {
			t.Errorf("%q is read as %v", wrong, got)
		}
	}
}
