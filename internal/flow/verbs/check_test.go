package verbs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/definitions"
)

// Definitions come from others, and their schemas go into the database, where many read them: neither a path nor a link in their folder
// brings a file of whoever applies them.
func TestASchemaIsReadFromTheFolderOfItsDefinitionAlone(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	folder := filepath.Join(top, "flow")
	if err := errors.Join(
		os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(top, "theirs.json"), []byte(`{"title": "TOPSECRET"}`), 0o600),
		os.WriteFile(filepath.Join(folder, "ours.json"), []byte(`{"title": "ours"}`), 0o600),
		os.Symlink("../theirs.json", filepath.Join(folder, "link.json")), os.Symlink("..", filepath.Join(folder, "above")),
		os.Symlink("ours.json", filepath.Join(folder, "inside.json")),
	); err != nil {
		t.Fatal(err)
	}
	for name, isRead := range map[string]bool{
		"ours.json": true, "inside.json": true, "link.json": false, "above/theirs.json": false, "../theirs.json": false,
		filepath.ToSlash(top) + "/theirs.json": false,
	} {
		document, err := definitions.Read([]definitions.Source{{
			Name: filepath.Join(folder, "flow.yaml"), Written: []byte(`message type: {A: {application: Orders, format: json, schema: {file: "` + name + `"}}}`),
		}}, definitions.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		faults := carryFiles(document)
		written, writeErr := document.JSON()
		if (len(faults) == 0) != isRead || writeErr != nil || strings.Contains(string(written), "TOPSECRET") {
			t.Errorf("%s: %v, %v, %s", name, faults, writeErr, written)
		}
	}
}
