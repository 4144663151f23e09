//go:build unix

package program_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley"
)

// asProgram, as the first argument, lets the binary of the tests be the program that a test starts.
const asProgram = "act-as"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asProgram {
		os.Exit(acts[os.Args[2]](os.Args[3:]))
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		// The server of the tests, when this is the package that starts it.
		goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

var acts = map[string]func(arguments []string) int{
	"leave": func([]string) int { return 0 },
	"crash": func([]string) int {
		fmt.Fprintln(os.Stderr, "first")
		fmt.Fprintln(os.Stderr, "out of cheese")
		return 3
	},
	"describe": func(arguments []string) int {
		fmt.Printf("arguments %q\n", arguments)
		directory, _ := os.Getwd()
		fmt.Printf("directory %s\n", directory)
		environment := os.Environ()
		slices.Sort(environment)
		fmt.Printf("environment %s\n", strings.Join(environment, " "))
		return 0
	},
	"wait": func([]string) int {
		fmt.Println("ready")
		select {}
	},
	"stay": func([]string) int {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		select {}
	},
	"finish": func([]string) int {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Println("ready")
		<-terminated
		fmt.Println("finished")
		return 0
	},
	"flood": func([]string) int {
		for i := range 20_000 {
			fmt.Printf("line %d of many\n", i)
		}
		fmt.Print(strings.Repeat("x", 1<<20))
		return 0
	},
	// Leaves a child behind that holds on to the output: in its own group, or in one of its own.
	"breed":  func([]string) int { return breed(nil) },
	"escape": func([]string) int { return breed(&syscall.SysProcAttr{Setsid: true}) },
	"sleep": func([]string) int {
		<-time.After(time.Minute)
		return 0
	},
	"receive": receive,
}

func breed(attributes *syscall.SysProcAttr) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	child := exec.Command(self, asProgram, "sleep")
	child.Stdout, child.SysProcAttr = os.Stdout, attributes
	if err := child.Start(); err != nil {
		return 1
	}
	fmt.Printf("child %d\n", child.Process.Pid)
	return 0
}

// receive is the work of a program: it receives until the queue is empty.
func receive([]string) int {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("PARLEY_DSN"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer conn.Close(ctx)
	for {
		messages, err := parley.Receive(ctx, conn, os.Getenv("PARLEY_QUEUE"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if len(messages) == 0 {
			return 0
		}
		for _, message := range messages {
			fmt.Printf("received %s\n", message.MessageBody)
		}
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
