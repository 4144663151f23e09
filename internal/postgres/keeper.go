//go:build unix

package postgres

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// keeperVariable carries the task of a keeper to it.
const keeperVariable = "PARLEY_POSTGRES_KEEPER"

// keeperPoll is how often a keeper checks whether the server is still used.
const keeperPoll = 500 * time.Millisecond

// keeperTask is the task of a keeper.
type keeperTask struct {
	Postgres string
	Args     []string
	Root     string
	UID, GID uint32
	Switched bool
	Linger   time.Duration
}

// A keeper is the parent of a server. Servers are shared, so the command that starts one must not take it
// along when it ends; and commands can be killed, so none of them can be trusted to stop it. The keeper stops
// the server once nobody has used it for as long as it may linger, however the users ended.
//
// It is this same program, started once more: that works for test binaries too, which is why an init
// function and not a verb of the command line begins it.
func init() {
	task, ok := os.LookupEnv(keeperVariable)
	if !ok {
		return
	}
	if err := keep(task); err != nil {
		fmt.Fprintln(os.Stderr, "parley:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startKeeper starts a server below a keeper. Both write to the log; the keeper ends when the server does.
func startKeeper(task keeperTask, log *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), keeperVariable+"="+string(text))
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: Ctrl-C in the terminal is for the command, not for the server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return cmd, nil
}

func keep(text string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	var task keeperTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return fmt.Errorf("read the keeper's task: %w", err)
	}
	locks, err := openGuard(task.Root)
	if err != nil {
		return err
	}
	defer locks.release()
	as := account{uid: task.UID, gid: task.GID, switched: task.Switched}
	server := as.command(task.Postgres, task.Args...)
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	if err := server.Start(); err != nil {
		return fmt.Errorf("start %s: %w", task.Postgres, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()

	unusedSince := time.Time{}
	ticker := time.NewTicker(keeperPoll)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
		}
		switch {
		case !locks.lockUnused():
			unusedSince = time.Time{}
			continue
		case unusedSince.IsZero():
			unusedSince = time.Now()
		}
		if time.Since(unusedSince) < task.Linger {
			locks.release()
			continue
		}
		// A process that comes now waits for the locks and then starts a server of its own.
		_ = server.Process.Signal(syscall.SIGINT)
		return <-ended
	}
}

// guard is the pair of locks of a data folder, in the order in which they are taken.
type guard struct{ start, users *fileLock }

// openGuard opens the locks for as long as the keeper lives. To open them again later could bring back files of
// a folder that is just being removed.
func openGuard(root string) (g guard, err error) {
	if g.start, err = openLock(filepath.Join(root, startLock)); err != nil {
		return g, err
	}
	g.users, err = openLock(filepath.Join(root, usersLock))
	return g, err
}

// lockUnused takes both locks if nobody uses the server or is about to.
func (g guard) lockUnused() bool {
	if ok, err := g.start.try(syscall.LOCK_EX); !ok || err != nil {
		return false
	}
	if ok, err := g.users.try(syscall.LOCK_EX); !ok || err != nil {
		g.start.release()
		return false
	}
	return true
}

func (g guard) release() {
	g.users.release()
	g.start.release()
}
