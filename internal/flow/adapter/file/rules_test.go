package file

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

func TestTheRulesOfAdaptersAreKept(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, name := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	endpoint := func(address, settings string) adapter.Endpoint {
		return adapter.Endpoint{
			Name: "Orders", Address: filepath.Join(top, address), Settings: json.RawMessage(settings), Logger: slog.New(slog.DiscardHandler),
			Permission: adapter.Permission{Folders: []string{top}},
		}
	}
	files := func(folder string) (bodies []string) {
		entries, err := os.ReadDir(filepath.Join(top, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			body, err := os.ReadFile(filepath.Join(top, folder, entry.Name()))
			if err == nil && !strings.HasPrefix(entry.Name(), ".") {
				bodies = append(bodies, string(body))
			}
		}
		return bodies
	}
	adaptertest.CheckKind(t, Kind)
	adaptertest.CheckReceiver(t, adaptertest.Source{
		Kind: Kind, Endpoint: endpoint("in/*", `{"ready": "renamed", "poll_interval": "20 milliseconds"}`), HasKeys: true,
		Left: func() int { return len(files("in")) },
		Put: func(body string) {
			written := filepath.Join(top, body)
			if err := os.WriteFile(written, []byte(body), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.Rename(written, filepath.Join(top, "in", body)); err != nil {
				t.Error(err)
			}
		},
	})
	adaptertest.CheckSender(t, adaptertest.Destination{
		Kind: Kind, Endpoint: endpoint("out/%MessageID%", `{"fsync": false}`), Received: func() []string { return files("out") },
	})
}
