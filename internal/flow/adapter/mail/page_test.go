package mail

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	adaptertest.CheckPage(t, Kind, adapter.Receive, receiveDefaults())
	adaptertest.CheckPage(t, Kind, adapter.Send, sendDefaults())
	adaptertest.CheckExamples(t, Kind)
}

func TestDefinitionsThatAreWrongAreSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		direction         adapter.Direction
		address, settings string
		want              string
	}{
		{adapter.Receive, "//orders", `{}`, ""},
		{adapter.Receive, "queue:orders", `{}`, "address: service binding"},
		{adapter.Receive, "//orders", `{"take": "raw"}`, "settings take: one of body, attachments, all"},
		{adapter.Receive, "//orders", `{"attachments": "["}`, "settings attachments: cannot be read"},
		{adapter.Receive, "//orders", `{"promoted": {"Form": "urn:p#F"}}`, "settings promoted Form: FileName, From"},
		{adapter.Send, "mailto:a@b.example", `{"from": "c@d.example"}`, ""},
		{adapter.Send, "a@b.example", `{"from": "c@d.example"}`, "address: mailto:"},
		{adapter.Send, "mailto:a@b.example", `{}`, "settings from: may send as"},
		{adapter.Send, "mailto:%To%@b.example", `{"from": "c@d.example"}`, "address: There are %MessageID%"},
		{adapter.Send, "mailto:a@b.example", `{"from": "c@d.example", "content": "text", "text": "x"}`, "settings text: attachment"},
		{adapter.Send, "mailto:a@b.example", `{"from": "c@d.example", "subject": "x\n"}`, "settings subject: control character"},
	} {
		problems := Kind.Check(c.direction, c.address, json.RawMessage(c.settings), nil)
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
