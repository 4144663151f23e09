package file

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

func TestDefinitionsThatAreWrongAreSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		direction         adapter.Direction
		address, settings string
		secrets           []string
		want              string // path, and a part of message and remedy
	}{
		{adapter.Receive, "/in/*.xml", `{"poll_interval": "5 minutes"}`, nil, ""},
		{adapter.Receive, "orders/*.xml", `{}`, nil, "address: no full path"},
		{adapter.Receive, "/in/", `{}`, nil, "address: folder alone"},
		{adapter.Receive, "/in/[a", `{}`, nil, "address: cannot be read"},
		{adapter.Receive, "/in/*", `{"ready": "now"}`, nil, "settings ready: one of stable, marker, renamed"},
		{adapter.Receive, "/in/*", `{"empty": "keep"}`, nil, "settings empty: one of suspend, pass, remove"},
		{adapter.Receive, "/in/*", `{"order": "size"}`, nil, "settings order: one of name, time"},
		{adapter.Receive, "/in/*", `{"batch_count": 0}`, nil, "settings batch_count: from 1"},
		{adapter.Receive, "/in/*", `{"batch_bytes": -1}`, nil, "settings batch_bytes: from 1"},
		{adapter.Receive, "/in/*", `{"poll_interval": "0 seconds"}`, nil, "settings poll_interval: at least 10 milliseconds"},
		{adapter.Receive, "/in/*", `{"stable_for": 5}`, nil, `settings stable_for: "5 seconds"`},
		{adapter.Receive, "/in/*", `{"move_to": "../x"}`, nil, "settings move_to: leads out"},
		{adapter.Receive, "/in/*", `{"ready": "marker", "marker_suffix": "/x"}`, nil, "settings marker_suffix: an ending"},
		{adapter.Receive, "/in/*", `{"colour": 1}`, nil, "settings colour: Its settings are poll_interval"},
		{adapter.Receive, "/in/*", `{}`, []string{"password"}, "secrets password: remove it"},
		{adapter.Send, "/out/%MessageID%.xml", `{"mode": "append"}`, nil, ""},
		{adapter.Send, "/out/%DestinationParty%.xml", `{"macros": {"DestinationParty": "urn:p#To"}}`, nil, ""},
		{adapter.Send, "/out/%DestinationParty%.xml", `{}`, nil, "address: macros: {DestinationParty"},
		{adapter.Send, "/out/%MesageID%.xml", `{}`, nil, "address: There are %MessageID%, %SourceFileName%, %datetime%"},
		{adapter.Send, "/out/100%.xml", `{}`, nil, "address: percent sign"},
		{adapter.Send, "/out/%time%/a", `{}`, nil, "address: in the name of the file alone"},
		{adapter.Send, "/out/.parley-x", `{}`, nil, "address: begin otherwise"},
		{adapter.Send, "/out/a", `{"mode": "replace"}`, nil, "settings mode: one of create, overwrite, append"},
		{adapter.Send, "/out/a", `{"permissions": "999"}`, nil, "settings permissions: chmod"},
		{adapter.Send, "/out/a", `{"macros": {"time": "urn:p#T"}}`, nil, "settings macros time: no macro of the adapter has"},
		{adapter.Send, "/out/a", `{"macros": []}`, nil, "settings macros: object"},
	} {
		problems := Kind.Check(c.direction, c.address, json.RawMessage(c.settings), c.secrets)
		if c.want == "" {
			if problems != nil {
				t.Errorf("%s %s: %+v", c.address, c.settings, problems)
			}
			continue
		}
		path, part, _ := strings.Cut(c.want, ": ")
		if !slices.ContainsFunc(problems, func(p adapter.Problem) bool {
			return strings.Join(p.Path, " ") == path && strings.Contains(p.Message+" "+p.Remedy, part) && p.Remedy != ""
		}) {
			t.Errorf("%s %s: %+v, and not %s", c.address, c.settings, problems, c.want)
		}
	}
}
