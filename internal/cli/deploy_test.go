package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/parley-broker/parley"
)

var (
	imageCommand = regexp.MustCompile(`(?m)^CMD (\[.*\])$`)
	unitCommand  = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/parley (.*)$`)
	chartFlag    = regexp.MustCompile(`(?m)^\s+- (--[a-z-]+)`)
	chartVerb    = regexp.MustCompile(`args: \[(.*)\]`)
	chartValue   = regexp.MustCompile(`\.Values((?:\.[A-Za-z]+)+)`)
	chartVersion = regexp.MustCompile(`(?m)^appVersion: (.*)$`)
)

// readDeployed reads a file by which others run the daemon.
func readDeployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// deployedCommands gives the command lines of the program in these files, without its own name.
func deployedCommands(t *testing.T) map[string][]string {
	t.Helper()
	commands := map[string][]string{}
	var image []string
	if err := json.Unmarshal([]byte(imageCommand.FindStringSubmatch(readDeployed(t, "container/Dockerfile"))[1]), &image); err != nil {
		t.Fatal(err)
	}
	commands["the Dockerfile"] = image
	for _, unit := range []string{"parley.service", "parley@.service"} {
		commands[unit] = strings.Fields(unitCommand.FindStringSubmatch(readDeployed(t, "systemd/"+unit))[1])
	}
	var compose struct {
		Services map[string]struct {
			Image   string   `yaml:"image"`
			Command []string `yaml:"command"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal([]byte(readDeployed(t, "container/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	for name, service := range compose.Services {
		if service.Image == "parley" {
			commands["service "+name+" of the compose file"] = service.Command
		}
	}
	chart := []string{"serve"}
	for _, match := range chartFlag.FindAllStringSubmatch(readDeployed(t, "helm/parley/templates/deployment.yaml"), -1) {
		chart = append(chart, match[1])
	}
	commands["the chart's deployment"] = chart
	job := chartVerb.FindStringSubmatch(readDeployed(t, "helm/parley/templates/schema.yaml"))[1]
	commands["the chart's job"] = strings.Split(job, ", ")
	return commands
}

func TestDeployedCommandsExistWithTheirFlags(t *testing.T) {
	t.Parallel()
	commands := deployedCommands(t)
	if len(commands) != 7 {
		t.Errorf("%d command lines were found: %v", len(commands), commands)
	}
	for where, words := range commands {
		cmd, rest := commandOf(rootWithCompletion(), words)
		if cmd == nil || cmd.Name() != words[0] {
			t.Errorf("%s calls %v, which is no command", where, words)
			continue
		}
		for _, word := range rest {
			name, found := strings.CutPrefix(word, "--")
			name, _, _ = strings.Cut(name, "=")
			if found && !hasFlag(cmd, name) {
				t.Errorf("%s: parley %s has no flag --%s", where, cmd.Name(), name)
			}
		}
	}
}

func TestChartUsesEachValueThatItDeclaresAndNoOther(t *testing.T) {
	t.Parallel()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(readDeployed(t, "helm/parley/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	templates, err := filepath.Glob(filepath.Join("..", "..", "deploy", "helm", "parley", "templates", "*"))
	if err != nil || len(templates) == 0 {
		t.Fatalf("the chart has %d templates, error %v", len(templates), err)
	}
	for _, file := range templates {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range chartValue.FindAllStringSubmatch(string(text), -1) {
			path := strings.Split(match[1], ".")[1:]
			used[path[0]] = true
			var at any = values
			for _, key := range path {
				folder, _ := at.(map[string]any)
				if _, exists := folder[key]; !exists {
					t.Errorf("%s uses %s, which values.yaml does not have", filepath.Base(file), match[0])
					break
				}
				at = folder[key]
			}
		}
	}
	for name := range values {
		if !used[name] {
			t.Errorf("values.yaml has %s, which no template uses", name)
		}
	}
}

func TestDeployedFilesNameTheReleaseOfTheProgram(t *testing.T) {
	t.Parallel()
	if got := chartVersion.FindStringSubmatch(readDeployed(t, "helm/parley/Chart.yaml"))[1]; got != parley.Release {
		t.Errorf("the chart is for release %s, and the program is %s", got, parley.Release)
	}
	if !strings.Contains(readDeployed(t, "container/compose.yaml"), "dist/parley_"+parley.Release+"_linux_amd64") {
		t.Errorf("the compose file does not take the binary of release %s", parley.Release)
	}
}
