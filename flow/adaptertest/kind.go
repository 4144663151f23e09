package adaptertest

import (
	"encoding/json"
	"testing"

	"github.com/parley-broker/parley/flow/adapter"
)

// CheckKind holds what an adapter says of itself, and how it checks definitions, to the rules.
func CheckKind(t *testing.T, kind adapter.Kind) {
	t.Helper()
	directions := map[adapter.Direction]bool{adapter.Receive: kind.NewReceiver != nil, adapter.Send: kind.NewSender != nil}
	if kind.Name == "" || kind.Check == nil || !directions[adapter.Receive] && !directions[adapter.Send] {
		t.Fatalf("adapter %q has no name, checks nothing, or moves messages in no direction", kind.Name)
	}
	for direction, has := range directions {
		if has != (kind.Guarantee[direction] != "") || has != (kind.Key[direction] != "") {
			t.Errorf("adapter %s says of %s what it does not do, or does not say which guarantee and key it has", kind.Name, direction)
		}
		if !has {
			continue
		}
		// A definition that is wrong gives problems with a place and a remedy, and never a panic.
		for _, address := range []string{"", " ", "x", "/", "://", "a\x00b", "%", "%%%", "[", "*", "https://[::1", "mailto:"} {
			for _, settings := range []string{``, `null`, `{}`, `[]`, `7`, `{"no such setting": {}}`, `{"": null}`} {
				checkProblems(t, kind, direction, address, settings, []string{"no such secret"})
			}
		}
		if !hasProblemAt(kind.Check(direction, "x", json.RawMessage(`{"no such setting": 1}`), nil), "settings", "no such setting") {
			t.Errorf("adapter %s takes a setting to %s by that it does not know", kind.Name, direction)
		}
	}
}

func checkProblems(t *testing.T, kind adapter.Kind, direction adapter.Direction, address, settings string, secrets []string) {
	t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			t.Errorf("adapter %s panics when %q, %s is checked to %s: %v", kind.Name, address, settings, direction, reason)
		}
	}()
	for _, p := range kind.Check(direction, address, json.RawMessage(settings), secrets) {
		if len(p.Path) == 0 || p.Message == "" || p.Remedy == "" {
			t.Errorf("adapter %s reports of %q, %s a problem without place, message or remedy: %+v", kind.Name, address, settings, p)
		}
	}
}

func hasProblemAt(problems []adapter.Problem, path ...string) bool {
	for _, p := range problems {
		isAt := len(p.Path) >= len(path)
		for i := range path {
			isAt = isAt && p.Path[i] == path[i]
		}
		if isAt {
			return true
		}
	}
	return false
}
