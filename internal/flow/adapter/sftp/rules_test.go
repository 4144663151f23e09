package sftp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/flow/adaptertest"
)

func TestTheRulesOfAdaptersAreKept(t *testing.T) {
	t.Parallel()
	in, out := newDouble(t), newDouble(t)
	adaptertest.CheckKind(t, Kind)
	adaptertest.CheckReceiver(t, adaptertest.Source{
		Kind: Kind, Endpoint: in.endpoint("*.xml", `{"ready": "renamed", "poll_interval": "20 milliseconds"}`), HasKeys: true,
		Left: func() int { return len(in.files(t, ".")) },
		Put: func(body string) {
			in.put(t, "."+body, body)
			if err := os.Rename(filepath.Join(in.folder, "."+body), filepath.Join(in.folder, body+".xml")); err != nil {
				t.Error(err)
			}
		},
	})
	adaptertest.CheckSender(t, adaptertest.Destination{
		Kind: Kind, Endpoint: out.endpoint("%MessageID%", `{}`), Received: func() (bodies []string) {
			for _, file := range out.files(t, ".") {
				if name, body, _ := strings.Cut(file, "="); !strings.HasPrefix(name, ".") {
					bodies = append(bodies, body)
				}
			}
			return bodies
		},
	})
}
