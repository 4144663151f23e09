package translator

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/check"
)

// Each view of the system that the runner has is one that --check says it runs.
func TestEachViewOfTheSystemIsInTheTable(t *testing.T) {
	t.Parallel()
	for name := range systemViews {
		if strings.HasPrefix(name, ".") { // without a schema it is that of dbo
			name = "dbo" + name
		}
		if row := check.Find("view " + name); row.State != check.Runs {
			t.Errorf("view %s: %s, %s", name, row.State, row.Reason)
		}
	}
}
