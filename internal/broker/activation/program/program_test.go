//go:build unix

package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/program"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

// define writes the definition of a queue that the binary of the tests reads, acting as defined.
func define(t *testing.T, changes map[string]any, act ...string) activation.Queue {
	t.Helper()
	d := map[string]any{
		"program":         append([]string{self(t), asProgram}, act...),
		"environment":     map[string]string{},
		"stop_timeout_ms": 60000,
		"schema_name":     "dbo",
		"queue_name":      "target",
	}
	maps.Copy(d, changes)
	external, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return activation.Queue{ID: 65537, Name: "target", Kind: activation.KindProgram, External: external}
}

func starter(t *testing.T) (*program.Starter, *logtest.Log) {
	t.Helper()
	log := &logtest.Log{}
	return &program.Starter{
		Permission: program.Permission{Programs: []string{self(t)}},
		DSN:        "postgres:///shop", Database: "shop",
		Logger: log.Logger(slog.LevelInfo),
	}, log
}

func newReader(t *testing.T, s *program.Starter, q activation.Queue) activation.Reader {
	t.Helper()
	reader, err := s.NewReader(q, 2)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func TestProgramThatLeavesHasFoundNothing(t *testing.T) {
	t.Parallel()
	s, _ := starter(t)
	if err := newReader(t, s, define(t, nil, "leave")).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProgramThatCrashesFailsWithItsLastLine(t *testing.T) {
	t.Parallel()
	s, log := starter(t)
	err := newReader(t, s, define(t, nil, "crash")).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3: out of cheese") {
		t.Errorf("got %v", err)
	}
	for _, line := range []string{`stream=stderr line=first`, `line="out of cheese"`, "queue=target", "instance=2"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("%s is not in the log:\n%s", line, log)
		}
	}
}

func TestProgramGetsItsQueueAndArgumentsAndNoShell(t *testing.T) {
	t.Setenv("PGPASSWORD", "daemon")
	t.Setenv("SECRET_OF_THE_DAEMON", "x")
	s, log := starter(t)
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.Permission.Directories = []string{directory}
	s.Permission.Environment = []string{"REGION", "APP_*"}
	q := define(t, map[string]any{
		"environment":       map[string]string{"REGION": "$HOME", "APP_MODE": "a b"},
		"working_directory": directory,
	}, "describe", "$(id)", "a b", "")
	if err := newReader(t, s, q).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`arguments [\"$(id)\" \"a b\" \"\"]`, "directory " + directory, "REGION=$HOME", "APP_MODE=a b",
		"PARLEY_DSN=postgres:///shop", "PARLEY_DATABASE=shop", "PARLEY_QUEUE=target", "PARLEY_QUEUE_SCHEMA=dbo", "PARLEY_QUEUE_NAME=target", "PARLEY_INSTANCE=2",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in\n%s", want, log)
		}
	}
	for _, secret := range []string{"PGPASSWORD", "SECRET_OF_THE_DAEMON"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is in\n%s", secret, log)
		}
	}
	s.PassPostgresVariables = true
	if err := newReader(t, s, q).Run(t.Context()); err != nil || !strings.Contains(log.String(), "PGPASSWORD=daemon") {
		t.Errorf("PostgreSQL's own variables do not arrive: %v\n%s", err, log)
	}
}

func TestNothingRunsThatTheOperatorHasNotAllowed(t *testing.T) {
	t.Parallel()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink("/bin/sh", link); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name       string
		permission program.Permission
		changes    map[string]any
		allowed    bool
	}{
		{name: "nothing allowed"},
		{name: "the program", permission: program.Permission{Programs: []string{self(t)}}, allowed: true},
		{name: "its folder", permission: program.Permission{Programs: []string{filepath.Dir(self(t)) + "/"}}, allowed: true},
		{name: "everything", permission: program.Permission{Programs: []string{"/"}}, allowed: true},
		{name: "a folder whose name it begins with", permission: program.Permission{Programs: []string{self(t)[:len(self(t))-1]}}},
		{name: "a relative path", permission: program.Permission{Programs: []string{"."}}},
		{name: "a link out of the folder", permission: program.Permission{Programs: []string{folder}}, changes: map[string]any{"program": []string{link}}},
		{
			name: "a way out of the folder", permission: program.Permission{Programs: []string{folder}},
			changes: map[string]any{"program": []string{folder + "/../../../../../../bin/sh"}},
		},
		{
			name: "another folder to work in", permission: program.Permission{Programs: []string{self(t)}},
			changes: map[string]any{"working_directory": folder},
		},
		{
			name: "the program's folder to work in", permission: program.Permission{Programs: []string{self(t)}},
			changes: map[string]any{"working_directory": filepath.Dir(self(t))}, allowed: true,
		},
		{
			name: "a variable", permission: program.Permission{Programs: []string{self(t)}, Environment: []string{"APP_*", "LD"}},
			changes: map[string]any{"environment": map[string]string{"LD_PRELOAD": "/tmp/x.so"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := starter(t)
			s.Permission = c.permission
			_, err := s.NewReader(define(t, c.changes, "leave"), 1)
			if c.allowed && err != nil {
				t.Error(err)
			}
			if !c.allowed && (!errors.Is(err, program.ErrNotAllowed) || !strings.Contains(err.Error(), "--allow-program")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProgramThatIsMissingFails(t *testing.T) {
	t.Parallel()
	s, _ := starter(t)
	folder := t.TempDir()
	s.Permission.Programs = []string{folder}
	if _, err := s.NewReader(define(t, map[string]any{"program": []string{folder + "/none"}}), 1); err == nil || errors.Is(err, program.ErrNotAllowed) {
		t.Errorf("got %v", err)
	}
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := newReader(t, s, define(t, map[string]any{"program": []string{text}})).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "start the program") {
		t.Errorf("got %v", err)
	}
}

func TestProgramIsAskedToLeave(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"wait", "finish"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s, log := starter(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			reader := newReader(t, s, define(t, nil, act))
			go func() { ended <- reader.Run(ctx) }()
			log.Await(t, "line=ready")
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if act == "finish" && !strings.Contains(log.String(), "line=finished") {
				t.Errorf("it could not finish:\n%s", log)
			}
		})
	}
}

func TestProgramThatIgnoresSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	s, log := starter(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	reader := newReader(t, s, define(t, map[string]any{"stop_timeout_ms": 50}, "stay"))
	go func() { ended <- reader.Run(ctx) }()
	log.Await(t, "line=ready")
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("got %v", err)
	}
	pid := regexp.MustCompile(`pid=(\d+)`).FindStringSubmatch(log.String())
	requireGone(t, pid[1])
}

func TestProgramThatFloodsIsCutAndCounted(t *testing.T) {
	t.Parallel()
	s, log := starter(t)
	if err := newReader(t, s, define(t, nil, "flood")).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	logged := strings.Count(log.String(), "program printed")
	left := 0
	for _, found := range regexp.MustCompile(`left out" .*lines=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		n, _ := strconv.Atoi(found[1])
		left += n
	}
	if logged+left != 20_001 || left == 0 {
		t.Errorf("%d lines were logged and %d left out, of 20001", logged, left)
	}
	if len(log.String()) > logged*500+20_000 {
		t.Errorf("the log has %d bytes", len(log.String()))
	}
}

func TestChildrenOfAProgramGoWithIt(t *testing.T) {
	t.Parallel()
	s, log := starter(t)
	if err := newReader(t, s, define(t, nil, "breed")).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := regexp.MustCompile(`line="child (\d+)"`).FindStringSubmatch(log.String())
	if child == nil {
		t.Fatalf("no child in\n%s", log)
	}
	requireGone(t, child[1])
}

func TestChildThatEscapesDoesNotHoldTheReaderUp(t *testing.T) {
	t.Parallel()
	s, log := starter(t)
	if err := newReader(t, s, define(t, nil, "escape")).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := regexp.MustCompile(`line="child (\d+)"`).FindStringSubmatch(log.String())
	if child == nil {
		t.Fatalf("no child in\n%s", log)
	}
	pid, _ := strconv.Atoi(child[1])
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the child is gone already, and proves nothing: %v", err)
	}
}

func TestReaderThatIsStoppedBeforeItBeganStartsNothing(t *testing.T) {
	t.Parallel()
	s, log := starter(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newReader(t, s, define(t, nil, "crash")).Run(ctx); err != nil || log.String() != "" {
		t.Errorf("got %v and\n%s", err, log)
	}
}

func TestProgramReceivesUntilItsQueueIsEmpty(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	for _, statement := range []string{
		"select parley.create_queue('initiator')", "select parley.create_service('initiator', 'initiator')",
		"select parley.create_queue('target')", "select parley.create_service('target', 'target', array['DEFAULT'])",
		fmt.Sprintf("select parley.create_program_activation('target', array['%s', '%s', 'receive'])", self(t), asProgram),
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	handle, err := parley.BeginDialog(t.Context(), pool, "initiator", "target")
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"one", "two"} {
		if err := parley.Send(t.Context(), pool, handle, parley.DefaultMessageType, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	q := activation.Queue{Name: "target"}
	if err := pool.QueryRow(t.Context(), "select definition from parley._p_external_readers()").Scan(&q.External); err != nil {
		t.Fatal(err)
	}
	s, log := starter(t)
	s.DSN = parleytest.DSN(t, pool)
	if err := newReader(t, s, q).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, `line="received one"`) || !strings.Contains(text, `line="received two"`) {
		t.Errorf("received was\n%s", text)
	}
}

// requireGone waits until a process is no more, or only its parent does not know yet.
func requireGone(t *testing.T, pid string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("process %s still runs", pid)
		case <-tick.C:
		}
	}
}
