package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/parley-broker/parley/parleytest"
)

// A screen is a terminal on which a program runs, and what it has written so far.
type screen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	ended  chan error

	mu   sync.Mutex
	text bytes.Buffer
	seen int // up to where expect has looked
}

// newScreen runs a program on a terminal of its own.
func newScreen(t *testing.T, environment []string, args ...string) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	var number, unlocked uint32
	for _, request := range []struct {
		code  uintptr
		value *uint32
	}{{syscall.TIOCSPTLCK, &unlocked}, {syscall.TIOCGPTN, &number}} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request.code, uintptr(unsafe.Pointer(request.value))); failed != 0 {
			t.Fatal(failed)
		}
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	s := &screen{t: t, master: master, cmd: exec.Command(args[0], args[1:]...), ended: make(chan error, 1)}
	s.cmd.Env = append(os.Environ(), environment...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	go s.read()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = master.Close()
	})
	return s
}

// read gathers what the program writes, until its terminal is closed.
func (s *screen) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := s.master.Read(buffer)
		s.mu.Lock()
		s.text.Write(buffer[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// expect waits for a pattern behind what it found last.
func (s *screen) expect(pattern string) {
	s.t.Helper()
	wanted := regexp.MustCompile(pattern)
	text := ""
	found := waitFor(storyPatience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		text = s.text.String()[s.seen:]
		at := wanted.FindStringIndex(text)
		if at != nil {
			s.seen += at[1]
		}
		return at != nil
	})
	if !found {
		s.t.Fatalf("%s does not come; the screen has %q", pattern, text)
	}
}

// waitFor reports whether a state comes in time.
func waitFor(patience time.Duration, state func() bool) bool {
	retry := time.NewTicker(awaitPoll)
	defer retry.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-retry.C {
		if state() {
			return true
		}
	}
	return false
}

// On a terminal lines are typed until GO; Ctrl-C ends the batch that runs and not the program, and drops the lines that are typed; the
// transaction stays; what was typed is there the next time.
func TestThePromptOfTSQL(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	past := filepath.Join(t.TempDir(), "history")
	environment := []string{"PARLEY_DSN=" + parleytest.DSN(t, pool), "PARLEY_TSQL_HISTORY=" + past, "TERM=xterm"}
	s := newScreen(t, environment, "parley", "tsql")
	s.expect(`1> `)
	s.types("CREATE QUEUE Empty\rGO\r")
	s.expect(`2> `)
	s.expect(`1> `)
	s.types("BEGIN TRANSACTION\rPRINT 'it waits'\rWAITFOR (RECEIVE * FROM Empty), TIMEOUT 86400000\rPRINT 'never'\rgo\r")
	s.expect("\nit waits\r\n")
	waits := "select exists (select from pg_stat_activity as a where a.datname = current_database() and a.query ~ 'parley.receive' and a.state = 'active' and a.pid <> pg_backend_pid())"
	if !waitFor(storyPatience, func() bool {
		var there bool
		return pool.QueryRow(context.WithoutCancel(t.Context()), waits).Scan(&there) == nil && there
	}) {
		t.Fatal("RECEIVE does not wait")
	}
	s.types("\x03")
	s.expect("The batch was cancelled. Its transaction is still open")
	s.expect(`1> `)
	s.types("WAITFOR DELAY '23:00'\r:list\r")
	s.expect("\nWAITFOR DELAY '23:00'\r\n")
	s.types("half a li\x03")
	s.expect(`1> `)
	s.types("PRINT CONCAT('open: ', @@TRANCOUNT)\rROLLBACK\rGO\r")
	s.expect("\nopen: 1\r\n")
	s.expect(`1> `)
	s.types(":nosuch\r")
	s.expect("syntax error near command ':nosuch'")
	s.types("\x1b[A\x1b[A\x1b[A\r") // the line above GO
	s.expect(`2> `)
	s.types("GO\r")
	s.expect("Msg 3903, ")
	s.expect(`1> `)
	s.types("EXIT(SELECT 7)\r")
	s.expect("7\r\n")
	err := <-s.ended
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != 7 {
		t.Errorf("EXIT(SELECT 7) ends with %v", err)
	}
	kept, err := os.ReadFile(past)
	if err != nil || !strings.HasPrefix(string(kept), "CREATE QUEUE Empty\nGO\nBEGIN TRANSACTION\n") {
		t.Errorf("the history has %q, %v", kept, err)
	}
	again := newScreen(t, environment, "parley", "tsql")
	again.expect(`1> `)
	again.types("\x1b[A")
	again.expect(`EXIT\(SELECT 7\)`)
	again.types("\x03")
	again.expect(`1> `)
	again.types("\x04")
	if err := <-again.ended; err != nil {
		t.Errorf("Ctrl-D ends with %v", err)
	}
}
