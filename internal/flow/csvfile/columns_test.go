package csvfile_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/csvfile"
)

func TestAHeaderLineOfAnotherDelimiterOrFileIsRefused(t *testing.T) {
	t.Parallel()
	expected := csvfile.Settings{Columns: []string{"No", "Unit price"}}
	known := csvfile.Settings{Known: []string{"No", "Unit_x0020_price"}}
	for _, c := range []struct {
		file     string
		settings csvfile.Settings
		want     string // in the error or its remedy; empty: it is read
	}{
		{"No;Name\n1;Bolt\n", csvfile.Settings{}, `the header line is one name with ";" in it`},
		{"No\tName\n1\tBolt\n", csvfile.Settings{Split: true}, `the header line is one name with a tab`},
		{"No;Name\n1\n", csvfile.Settings{}, ""}, // a name
		{"No;Name\n1;Bolt\n", csvfile.Settings{Columns: []string{"No;Name"}}, ""},
		{"No\n1;Bolt\n", csvfile.Settings{}, ""}, // one column
		{"No;Unit price\n", expected, `the header line does not name the column "No"`},
		{"No;Unit price\n", expected, `with ";" in it`},
		{"No,Price\n", expected, `the header line does not name the column "Unit price"`},
		{"Unit price,Name,No\n1,2,3\n", expected, ""},
		{"Name,Price\n", known, `the schema of the message type has none of the columns "Name", "Price"`},
		{"No;Unit price\n", known, `with ";" in it`},
		{"Name,Unit price\n1,2\n", known, ""},
		{"Name,Unit price\n1,2\n", csvfile.Settings{Known: known.Known, AsJSON: true}, "has none of the columns"},
	} {
		_, _, err := read(t, c.file, c.settings)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.file, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error()+remedyOf(t, err), c.want)):
			t.Errorf("%q: %v, want %s", c.file, err, c.want)
		}
	}
}
