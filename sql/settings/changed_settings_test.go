package settings_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// coreOfTheSuite names tests of folders of the schema, which are run once more where an administrator has changed every setting.
const coreOfTheSuite = "^(TestReceiveTakes.*|TestTimer.*|TestMailToAServiceOrATable.*|TestCategorizerResolves.*|" +
	"TestCategorizerThatDies.*|TestSendToSeveralConversations|TestSendAndEnd.*|TestPut.*|TestDiagnosisFindsNothing.*|TestCheckBrokerFinds.*)$"

// coreFolders have these tests.
var coreFolders = []string{
	"parley/receive", "parley/conversation", "parley/send", "parley/simple", "parley/activation", "parley/diagnosis",
	"mail/categorizer", "mail/services",
}

var passed = regexp.MustCompile(`(?m)^--- PASS: Test`)

func TestCoreOfTheSuitePassesUnderChangedSettings(t *testing.T) {
	if os.Getenv("PARLEY_TEST_SETTINGS") != "" {
		t.Skip("settings are changed already")
	}
	if testing.Short() {
		t.Skip("it runs a part of the suite twice more")
	}
	t.Parallel()
	programs := t.TempDir()
	arguments := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", programs + string(os.PathSeparator)}
	for _, folder := range coreFolders {
		arguments = append(arguments, "../"+folder)
	}
	if output, err := exec.CommandContext(t.Context(), "go", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("the tests cannot be built: %v\n%s", err, output)
	}
	// Where a setting was changed is the same to a function that sets it. The command runs with those of a role (internal/cli).
	levels := map[string][]string{"database": coreFolders}
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		levels["role"] = coreFolders
	}
	for level, folders := range levels {
		for _, folder := range folders {
			t.Run(level+" "+folder, func(t *testing.T) {
				t.Parallel()
				program := filepath.Join(programs, path.Base(folder)+".test")
				cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run="+coreOfTheSuite, "-test.count=1", "-test.parallel=2")
				cmd.Dir = filepath.Join("..", filepath.FromSlash(folder))
				cmd.Env = append(os.Environ(), "PARLEY_TEST_SETTINGS="+level)
				switch output, err := cmd.CombinedOutput(); {
				case err != nil:
					t.Errorf("with the settings of the %s changed: %v\n%s", level, err, output)
				case !passed.Match(output):
					t.Errorf("sql/%s has none of these tests", folder)
				}
			})
		}
	}
}
