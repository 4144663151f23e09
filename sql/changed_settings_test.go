package sql_test

import (
	"os"
	"os/exec"
	"testing"
)

// coreOfTheSuite names tests of each folder of the schema, which are run once more where an administrator has changed every setting.
const coreOfTheSuite = "^(TestReceiveTakes.*|TestEndConversation.*|TestTimer.*|TestMailToAServiceOrATable.*|TestCategorizerResolves.*|" +
	"TestCategorizerThatDies.*|TestSendToSeveralConversations|TestSendAndEnd.*|TestPut.*|TestDiagnosisFindsNothing.*|TestCheckBrokerFinds.*)$"

func TestCoreOfTheSuitePassesUnderChangedSettings(t *testing.T) {
	if os.Getenv("PARLEY_TEST_SETTINGS") != "" {
		t.Skip("settings are changed already")
	}
	if testing.Short() {
		t.Skip("it runs a part of the suite twice more")
	}
	t.Parallel()
	for _, level := range []string{"database", "role"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+coreOfTheSuite, "-test.count=1", "-test.parallel=2")
			cmd.Env = append(os.Environ(), "PARLEY_TEST_SETTINGS="+level)
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("with the settings of the %s changed: %v\n%s", level, err, output)
			}
		})
	}
}
