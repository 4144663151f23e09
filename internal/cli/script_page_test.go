package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-broker/parley/parleytest"
)

// pageFolder is the folder that a page uses; the test gives it another one.
const pageFolder = "/tmp/parley-tutorial"

var (
	pageBlock = regexp.MustCompile("(?ms)^```(console|sql)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?")
	// pageElsewhere are commands for which the test has its own: the clone, the build and the private server.
	pageElsewhere = regexp.MustCompile(`git clone|parley up`)
	pageRuling    = regexp.MustCompile(`(?m)^[-+ ]+$`)
	pageBlanks    = regexp.MustCompile(`[ \t]+`)
)

// scriptPage runs the blocks of a page in their order. A block whose output the page shows is repeated until it comes, so it only reads.
// A role that the page makes belongs to the whole server, and gets a name of its own.
func scriptPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: page PAGE ROLE")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(args[0])))
	ts.Check(err)
	role := fmt.Sprintf("%s_%d", args[1], os.Getpid())
	folder := ts.MkAbs("page")
	own := strings.NewReplacer(pageFolder, folder, args[1], role, "./parley ", "parley ")
	ts.Defer(func() { dropRole(ts.Getenv("PARLEY_DSN"), role) })
	count, stop := 0, func() {}
	for _, found := range pageBlock.FindAllStringSubmatch(string(text), -1) {
		kind, block, want := found[1], own.Replace(found[2]), found[3]
		switch {
		case pageElsewhere.MatchString(block):
			continue
		case strings.Contains(block, "flow serve"):
			stop = startPageNode(ts, block)
		default:
			if strings.Contains(block, "parley uninstall") {
				stop() // as the page says
			}
			runPageBlock(ts, kind, block, want)
		}
		count++
	}
	if count == 0 {
		ts.Fatalf("%s has no commands", args[0])
	}
}

func runPageBlock(ts *testscript.TestScript, kind, block, want string) {
	run := func() string {
		if kind == "sql" {
			return pageSQL(ts, block)
		}
		ts.Check(ts.Exec("sh", "-ec", block))
		return ts.ReadFile("stdout")
	}
	shown := run()
	retry := time.NewTicker(awaitPoll)
	defer retry.Stop()
	for deadline := time.Now().Add(parleytest.Patience); want != "" && pageEssence(shown) != pageEssence(want); shown = run() {
		if time.Now().After(deadline) {
			ts.Fatalf("the page shows for\n%s\nthe output\n%s\nbut it gives\n%s", block, want, shown)
		}
		<-retry.C
	}
}

// pageEssence leaves out how columns are aligned.
func pageEssence(shown string) string {
	var lines []string
	for line := range strings.Lines(pageRuling.ReplaceAllString(shown, "")) {
		if line = strings.TrimSpace(pageBlanks.ReplaceAllString(line, " ")); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// pageSQL runs statements, and writes the rows of the last as psql does, but for their alignment.
func pageSQL(ts *testscript.TestScript, statements string) string {
	conn := scriptConnection(ts)
	defer func() { _ = conn.Close(context.Background()) }()
	results, err := conn.PgConn().Exec(context.Background(), statements).ReadAll()
	ts.Check(err)
	last := results[len(results)-1]
	var shown strings.Builder
	for i, field := range last.FieldDescriptions {
		fmt.Fprint(&shown, map[bool]string{true: " | "}[i > 0], field.Name)
	}
	for _, row := range last.Rows {
		shown.WriteString("\n")
		for i, value := range row {
			fmt.Fprint(&shown, map[bool]string{true: " | "}[i > 0], string(value))
		}
	}
	fmt.Fprintf(&shown, "\n(%d %s)\n", len(last.Rows), map[bool]string{true: "row", false: "rows"}[len(last.Rows) == 1])
	return shown.String()
}

// startPageNode starts a command that goes on until it is stopped, or the script ends.
func startPageNode(ts *testscript.TestScript, block string) (stop func()) {
	node := exec.Command("sh", "-c", "exec "+block)
	node.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "PARLEY_DSN="+ts.Getenv("PARLEY_DSN"))
	var said strings.Builder
	node.Stdout, node.Stderr = &said, &said
	ts.Check(node.Start())
	stop = sync.OnceFunc(func() {
		_ = node.Process.Signal(os.Interrupt)
		_ = node.Wait()
		ts.Logf("the node said:\n%s", said.String())
	})
	ts.Defer(stop)
	return stop
}

// dropRole drops a role that a page has left when it failed.
func dropRole(dsn, role string) {
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, _ = conn.Exec(context.Background(), "drop owned by "+role+"; drop role "+role)
}
