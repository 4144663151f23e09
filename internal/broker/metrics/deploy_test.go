package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

var (
	familyName = regexp.MustCompile(`fqName: "(\w+)"`)
	metricName = regexp.MustCompile(`\bparley_\w+`)
	duration   = regexp.MustCompile(`^[0-9]+[smh]$`)
	selector   = regexp.MustCompile(`\{([^}]*)\}`)
)

// families gives the names of all metrics of the daemon.
func families(t *testing.T) map[string]bool {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 100)
	(&collector{}).Describe(descriptions)
	close(descriptions)
	names := map[string]bool{}
	for description := range descriptions {
		names[familyName.FindStringSubmatch(description.String())[1]] = true
	}
	return names
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// requireMetrics checks an expression: its metrics exist, and its brackets are closed.
func requireMetrics(t *testing.T, where, expression string) (used []string) {
	t.Helper()
	used = metricName.FindAllString(expression, -1)
	if len(used) == 0 {
		t.Errorf("%s: %q asks for no metric of ours", where, expression)
	}
	exists := families(t)
	for _, name := range used {
		if !exists[name] {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	var open []rune
	for _, r := range selector.ReplaceAllString(expression, "") {
		switch r {
		case '(', '[':
			open = append(open, r)
		case ')', ']':
			if len(open) == 0 || open[len(open)-1] != map[rune]rune{')': '(', ']': '['}[r] {
				t.Fatalf("%s: brackets of %q do not match", where, expression)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: brackets of %q are left open", where, expression)
	}
	// A rate of what may fall means nothing, and a counter that never stops to grow is no level.
	for _, name := range used {
		isRated := strings.Contains(expression, "rate("+name) || strings.Contains(expression, "increase("+name)
		if isRated != strings.HasSuffix(name, "_total") {
			t.Errorf("%s: %s is used in the wrong way in %q", where, name, expression)
		}
	}
	return used
}

type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func TestAlertRulesAskForMetricsThatExist(t *testing.T) {
	t.Parallel()
	decoder := yaml.NewDecoder(strings.NewReader(string(readFile(t, "deploy/prometheus/parley.rules.yml"))))
	decoder.KnownFields(true)
	var file ruleFile
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	page := string(readFile(t, "docs/guides/monitoring.md"))
	names := map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			requireMetrics(t, rule.Alert, rule.Expr)
			if names[rule.Alert] || !strings.HasPrefix(rule.Alert, "Parley") {
				t.Errorf("%s is not a name of its own", rule.Alert)
			}
			names[rule.Alert] = true
			if rule.For != "" && !duration.MatchString(rule.For) {
				t.Errorf("%s: %q is no duration", rule.Alert, rule.For)
			}
			if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
				t.Errorf("%s has severity %q", rule.Alert, severity)
			}
			if !strings.Contains(rule.Annotations["summary"], "$labels.database") {
				t.Errorf("%s does not say which database: %q", rule.Alert, rule.Annotations["summary"])
			}
			if !strings.Contains(page, "`"+rule.Alert+"`") {
				t.Errorf("docs/guides/monitoring.md does not say what to do about %s", rule.Alert)
			}
		}
	}
	if len(names) == 0 {
		t.Error("there are no rules")
	}
}

type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct {
			X, Y, W, H int
		} `json:"gridPos"`
		Targets []struct {
			Expr  string `json:"expr"`
			RefID string `json:"refId"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestDashboardShowsEachMetricAndNoOther(t *testing.T) {
	t.Parallel()
	var board dashboard
	if err := json.Unmarshal(readFile(t, "deploy/grafana/parley.json"), &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || board.Title == "" || board.SchemaVersion == 0 {
		t.Errorf("the dashboard is %q %q of schema %d", board.UID, board.Title, board.SchemaVersion)
	}
	shown := map[string]bool{}
	for _, variable := range board.Templating.List {
		if variable.Definition != "" {
			for _, name := range metricName.FindAllString(variable.Definition, -1) {
				if !families(t)[name] {
					t.Errorf("variable %s: there is no metric %s", variable.Name, name)
				}
			}
		}
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, panel := range board.Panels {
		if ids[panel.ID] {
			t.Errorf("panel %q has the id of another", panel.Title)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beyond the edge", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		for _, target := range panel.Targets {
			for _, name := range requireMetrics(t, panel.Title, target.Expr) {
				shown[name] = true
			}
		}
	}
	for name := range families(t) {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestEachMetricIsDescribed(t *testing.T) {
	t.Parallel()
	page := string(readFile(t, "docs/guides/monitoring.md"))
	for name := range families(t) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/guides/monitoring.md does not say what %s is", name)
		}
	}
	for _, name := range metricName.FindAllString(page, -1) {
		if !families(t)[name] {
			t.Errorf("docs/guides/monitoring.md names %s, which does not exist", name)
		}
	}
}

// The units start the program with flags that it has.
func TestUnitsOfSystemdAreWhole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"parley.service", "parley@.service"} {
		unit := string(readFile(t, "deploy/systemd/"+name))
		for _, want := range []string{
			"[Unit]\n", "[Service]\n", "[Install]\n", "Type=notify\n", "Restart=always\n", "ExecStart=/usr/local/bin/parley serve --http ",
			"NoNewPrivileges=yes\n", "ProtectSystem=strict\n", "DynamicUser=yes\n", "WantedBy=multi-user.target\n",
		} {
			if !strings.Contains(unit, want) {
				t.Errorf("%s has no %q", name, strings.TrimSpace(want))
			}
		}
	}
}

var copied = regexp.MustCompile(`(?m)^COPY (?:--chmod=\S+ )?([^-\s]\S*) `)

// The container file copies what there is, serves what monitoring.md states and runs as a user without a name. No container engine is
// asked.
func TestContainerFileIsWhole(t *testing.T) {
	t.Parallel()
	file := string(readFile(t, "deploy/container/Dockerfile"))
	sources := copied.FindAllStringSubmatch(file, -1)
	if len(sources) < 2 {
		t.Fatalf("it copies %q", sources)
	}
	for _, source := range sources {
		if source[1] != "${BINARY}" {
			readFile(t, source[1])
		}
	}
	for _, want := range []string{
		"FROM scratch\n", "USER 65532:65532\n", `ENTRYPOINT ["/usr/bin/parley"]`, `CMD ["serve", "--http", "0.0.0.0:9187", "--log-format", "json"]`,
		"ENV PARLEY_DATA=/var/lib/parley", "VOLUME /var/lib/parley\n",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("deploy/container/Dockerfile has no %q", strings.TrimSpace(want))
		}
	}
}
