//go:build unix

package ownpath

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPathThatOthersCanChangeIsRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	if err := os.MkdirAll(filepath.Join(base, "open", "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(base, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"into": "open/inside", "own": "closed", "self": "self"} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(base, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(base, "sticky"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(base, "sticky"), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"closed":         "",
		"closed/missing": "",
		"own/missing":    "",
		"sticky/missing": "",
		"open":           "others may write",
		"open/inside":    "others may write",
		"into":           "others may write",
		"into/missing":   "others may write",
		"self/missing":   "too many links",
	} {
		err := Require("folder", filepath.Join(base, path))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	// A link of somebody else is not followed, nor a folder of his entered; root's group is root's.
	if err := os.Lchown(filepath.Join(base, "own"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(base, "theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(base, "theirs"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(base, "closed"), 0, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(base, "closed"), 0o770); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"own", "own/missing", "theirs", "theirs/missing", "closed", "closed/missing"} {
		if err := Require("folder", filepath.Join(base, path)); err == nil {
			t.Errorf("%s is accepted", path)
		}
	}
}
