// Package mappingtest gives tests the worker for stylesheets, and runs the test's own program as that for jq.
package mappingtest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

const requireVariable = "PARLEY_TEST_REQUIRE_XSLT"

// jqArgument makes a test's program a worker for jq.
const jqArgument = "parley-test-jq-worker"

// Main runs tests, or the worker for jq for which this program was started, and gives the exit code. Call it from TestMain.
func Main(m *testing.M, runJQ func(in io.Reader, out io.Writer) error) int {
	if len(os.Args) > 1 && os.Args[1] == jqArgument {
		if err := runJQ(os.Stdin, os.Stdout); err != nil && !errors.Is(err, io.EOF) {
			return 1
		}
		return 0
	}
	return m.Run()
}

// JQ gives the command that runs this program as a worker for jq.
func JQ(t testing.TB) []string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{name, jqArgument}
}

// built is the worker, made once for all tests of a program.
var built = sync.OnceValues(build)

// Worker gives the path of parley-xslt. Without a C compiler or the headers of libxslt the test is skipped, or fails where
// PARLEY_TEST_REQUIRE_XSLT is set.
func Worker(t testing.TB) string {
	t.Helper()
	name, err := built()
	switch {
	case err == nil:
		return name
	case os.Getenv(requireVariable) != "":
		t.Fatalf("%v, and %s asks for it", err, requireVariable)
	}
	t.Skipf("%v: install gcc, make and libxslt1-dev", err)
	return ""
}

// source is the folder of the worker in this repository, in which tests run, also those of a module within it.
func source() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		source := filepath.Join(folder, "internal", "flow", "mapping", "parley-xslt")
		if _, found := os.Stat(source); found == nil {
			return source, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("the tests do not run in the repository")
		}
		folder = filepath.Dir(folder)
	}
	return "", err
}

// build makes parley-xslt in its folder. A lock keeps packages that are tested at the same time from making it together.
func build() (string, error) {
	folder, err := source()
	if err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "parley-xslt.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	said, err := exec.Command("make", "--silent", "-C", folder, "parley-xslt").CombinedOutput()
	if err != nil {
		return "", errors.Join(errors.New("parley-xslt cannot be built: "+string(said)), err)
	}
	return filepath.Join(folder, "parley-xslt"), nil
}
