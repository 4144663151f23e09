package biztalk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/sqltest"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// checked gives what a database says of definitions, with a role of the test in place of those of the hosts. Variables without a value
// get one.
func checked(t *testing.T, b *sqltest.Broker, result *biztalk.Result) []flowstore.Fault {
	t.Helper()
	written, err := definitions.WriteWith(result.Definitions, result.Variables)
	if err != nil {
		t.Fatal(err)
	}
	settings := definitions.Settings{Set: map[string]string{}}
	for name, value := range result.Variables {
		if value == nil {
			settings.Set[name] = "x"
		}
	}
	document, err := definitions.Read([]definitions.Source{{Name: "import.yaml", Written: written}}, settings)
	if err != nil {
		t.Fatalf("what was written is not read: %v\n%s", err, written)
	}
	content, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	requireKnown(t, content)
	faults, err := flowstore.Check(t.Context(), b.DB, withRole(t, content, b.Role("host")), false)
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestFilesOfAFolderAreTakenOver reads files that are not in the repository: PARLEY_TEST_BIZTALK names a folder with binding files,
// pipelines and schemas.
func TestFilesOfAFolderAreTakenOver(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("PARLEY_TEST_BIZTALK")
	if folder == "" {
		t.Skip("PARLEY_TEST_BIZTALK names no folder")
	}
	b := sqltest.NewBroker(t)
	read, refused := 0, 0
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		result, err := biztalk.Import([]biztalk.Source{{Name: name, Body: body}}, biztalk.Settings{})
		if err != nil {
			refused++
			t.Logf("%s is refused: %v", name, err)
			return nil
		}
		read++
		for _, f := range checked(t, b, result) {
			t.Errorf("%s: %v: %s", name, f.Path, f.Message)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files were taken over, %d refused", read, refused)
}
