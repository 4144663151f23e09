//go:build unix

package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

func TestSecondStartJoinsTheRunningServer(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	first := start(t, config)
	second := start(t, config)
	if a, b := birth(t, first), birth(t, second); a != b {
		t.Errorf("two servers, started at %s and %s", a, b)
	}
}

func TestLastToLetGoStopsTheServer(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	first := start(t, config)
	second := start(t, config)
	stop(t, first)
	if !runs(t, second) {
		t.Fatal("the server stopped while it was in use")
	}
	stop(t, second)
	if runs(t, second) {
		t.Error("the server runs though nobody uses it")
	}
}

func TestStartsAtOnceShareOneServer(t *testing.T) {
	t.Parallel()
	config := smallConfig(emptyFolder(t))
	const starts = 8
	servers := make([]*Server, starts)
	errs := make([]error, starts)
	var group sync.WaitGroup
	for i := range starts {
		group.Go(func() { servers[i], errs[i] = Start(t.Context(), config) })
	}
	group.Wait()
	births := map[string]bool{}
	for i, server := range servers {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		births[birth(t, server)] = true
	}
	for _, server := range servers {
		group.Go(func() { stop(t, server) })
	}
	group.Wait()
	if len(births) != 1 {
		t.Errorf("%d servers ran on one folder", len(births))
	}
	if runs(t, servers[0]) {
		t.Error("the server runs though nobody uses it")
	}
}

func TestLingeringServerIsJoinedAndThenStopsByItself(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	config.Linger = 3 * keeperPoll
	first := start(t, config)
	stop(t, first)
	second := start(t, config)
	stop(t, second)
	await(t, func() bool { return !runs(t, second) })
}

// folderVariable turns the test binary into a command that uses the server of a folder until it is killed.
const folderVariable = "PARLEY_POSTGRES_TEST_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(folderVariable); folder != "" {
		server, err := Start(context.Background(), smallConfig(folder))
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, "uses", server.DSN("postgres"))
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends, if nothing kills us before
		return
	}
	m.Run()
	_ = os.RemoveAll(seed)
}

// startCommand runs such a command and returns once it uses the server.
func startCommand(t *testing.T, folder string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), folderVariable+"="+folder)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "uses ") {
		t.Fatalf("the command says %q, %v", line, err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func TestServerOutlivesTheCommandThatStartedIt(t *testing.T) {
	t.Parallel()
	folder := seededFolder(t)
	command := startCommand(t, folder)
	server := start(t, smallConfig(folder))
	before := birth(t, server)
	kill(t, command)
	if after := birth(t, server); after != before {
		t.Errorf("the server was started again: %s, before %s", after, before)
	}
}

func TestServerStopsWhenItsLastUserIsKilled(t *testing.T) {
	t.Parallel()
	folder := seededFolder(t)
	command := startCommand(t, folder)
	other := start(t, smallConfig(folder))
	// Only the killed command is left to stop it.
	other.users.close()
	other.users = nil
	kill(t, command)
	await(t, func() bool { return !runs(t, other) })
}
