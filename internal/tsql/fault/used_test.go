package fault

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// raised finds the numbers with which errors are made.
var raised = regexp.MustCompile(`fault\.New\((\d+)|\b(?:syntax|overflow|warning|number) (?::?=) (\d+)|\bcase (?:[a-zA-Z]|").*: *number = (\d+)`)

// An error whose number has no row would panic where it is raised, which a test may never reach.
func TestEachNumberThatIsRaisedHasItsRow(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range raised.FindAllStringSubmatch(string(text), -1) {
			for _, digits := range match[1:] {
				number, err := strconv.Atoi(digits)
				if err != nil || number == 0 {
					continue
				}
				found++
				if _, _, known := Text(number); !known {
					t.Errorf("%s raises %d, which has no row in messages.tsv", path, number)
				}
			}
		}
		return nil
	})
	if err != nil || found < 150 {
		t.Errorf("%d numbers, %v", found, err)
	}
}
