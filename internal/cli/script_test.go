package cli

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-broker/parley/parleytest"
)

const (
	awaitPoll = 20 * time.Millisecond
	// storyPatience is more than a step of a story takes on a slow machine: some start a server or several.
	storyPatience = 3 * parleytest.Patience
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"parley": func() { os.Exit(Run(os.Args[1:])) },
	})
}

// TestScripts runs the stories of testdata/script, each against a real PostgreSQL. They state what they need:
//
//	database [empty]   names a fresh database in PARLEY_DSN, with the schema or without
//	datafolder         names a new data folder for a private PostgreSQL in PARLEY_DATA
//	await PATTERN FILE waits until a file, such as the output of a command in the background, matches
//	found NAME PATTERN FILE puts what the first group of a pattern matches in a file into a variable, once it does
//	page PAGE ROLE     runs the commands and statements of a page of the documentation, as somebody who types them in
//	sql STATEMENT...   runs statements in that database
//	value NAME QUERY   puts what a query gives into a variable
//	webaddress NAME STATUS TEXT makes a web address that answers each request so, and puts it into a variable
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PARLEY_POSTGRES_VERSION", os.Getenv("PARLEY_TEST_POSTGRES"))
			// Fetched programs are in the user's cache, which the scripts have no home to find.
			for _, name := range []string{"HOME", "XDG_CACHE_HOME"} {
				env.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return os.Getenv("PARLEY_TEST_LONG") != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"database":   func(ts *testscript.TestScript, neg bool, args []string) { scriptDatabase(t, ts, neg, args) },
			"datafolder": scriptDataFolder,
			"await":      scriptAwait,
			"found":      scriptFound,
			"page":       scriptPage,
			"sql":        scriptSQL,
			"value":      scriptValue,
			"webaddress": scriptWebAddress,
		},
	})
}

func scriptDatabase(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case neg || len(args) > 1 || len(args) == 1 && args[0] != "empty":
		ts.Fatalf("usage: database [empty]")
	case len(args) == 1:
		ts.Setenv("PARLEY_DSN", parleytest.DSN(t, parleytest.EmptyDatabase(t)))
	default:
		ts.Setenv("PARLEY_DSN", parleytest.DSN(t, parleytest.Database(t)))
	}
}

// scriptDataFolder makes a folder outside the script's own, which PostgreSQL's user could not reach.
func scriptDataFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: datafolder")
	}
	folder, err := os.MkdirTemp("", "parley-script-")
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(folder) })
	ts.Check(os.Chmod(folder, 0o711))
	ts.Setenv("PARLEY_DATA", folder)
}

// scriptFound waits like await.
func scriptFound(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: found NAME PATTERN FILE")
	}
	scriptAwait(ts, false, args[1:])
	text, err := os.ReadFile(ts.MkAbs(args[2]))
	ts.Check(err)
	ts.Setenv(args[0], string(regexp.MustCompile(args[1]).FindSubmatch(text)[1]))
}

// scriptAwait waits until a file holds a pattern. A story that never goes on ends with what the file holds, and not with the time-out of
// the package.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await PATTERN FILE")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	retry := time.NewTicker(awaitPoll)
	defer retry.Stop()
	for deadline := time.Now().Add(storyPatience); ; <-retry.C {
		text, err := os.ReadFile(ts.MkAbs(args[1]))
		if err == nil && pattern.Match(text) {
			return
		}
		if err != nil && !os.IsNotExist(err) {
			ts.Check(err)
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited %v in vain for %s in %s, which holds:\n%s", storyPatience, pattern, args[1], text)
		}
	}
}
