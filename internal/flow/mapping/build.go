package mapping

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

//go:embed parley-xslt/*.c parley-xslt/*.h
var workerSources embed.FS

// BuildWorker compiles parley-xslt of the source that this program carries, and puts it into a folder. It needs a C compiler, cc where none
// is named, and the headers of libxslt.
func BuildWorker(ctx context.Context, compiler, folder string) (name string, err error) {
	if compiler == "" {
		compiler = "cc"
	}
	work, err := os.MkdirTemp("", "parley-xslt-")
	if err != nil {
		return "", fmt.Errorf("make a folder to build in: %w", err)
	}
	defer os.RemoveAll(work)
	sources, err := fs.Sub(workerSources, workerName)
	if err == nil {
		err = os.CopyFS(work, sources)
	}
	if err != nil {
		return "", fmt.Errorf("write the source of the worker: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(work, "*.c"))
	if err != nil {
		return "", fmt.Errorf("find the source of the worker: %w", err)
	}
	built := filepath.Join(work, workerName)
	arguments := []string{
		"-std=gnu11", "-O2", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fPIE", "-pie", "-Wl,-z,relro,-z,now",
		"-I/usr/include/libxml2", "-o", built,
	}
	arguments = append(append(arguments, files...), "-lexslt", "-lxslt", "-lxml2", "-lm")
	said, err := exec.CommandContext(ctx, compiler, arguments...).CombinedOutput()
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return "", &fault.Fault{
			Message: strings.TrimSpace(fmt.Sprintf("%s cannot build the worker: %v %s", compiler, err, first)), Err: err,
			Remedy: "install a C compiler and the headers of libxslt: on Debian gcc, libc6-dev and libxslt1-dev; on Fedora gcc and libxslt-devel",
		}
	}
	if name, err = filepath.Abs(filepath.Join(folder, workerName)); err != nil {
		return "", err
	}
	program, err := os.ReadFile(built)
	if err == nil {
		// A worker that runs keeps its file.
		err = errors.Join(os.WriteFile(name+".new", program, 0o755), os.Rename(name+".new", name))
	}
	if err != nil {
		return "", &fault.Fault{Message: fmt.Sprintf("put the worker into its folder: %v", err), Err: err, Remedy: "name another --folder"}
	}
	return name, nil
}
