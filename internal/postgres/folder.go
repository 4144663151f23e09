//go:build unix

package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/parley-broker/parley/internal/ownpath"
)

// socketPort names the socket file; it is a TCP port only if TCP was asked for.
const socketPort = 5432

// socketPathMax is the longest socket path that every supported system takes (104 bytes on the BSDs,
// 108 on Linux, both with a terminating zero).
const socketPathMax = 103

// folder is a data folder: the cluster, its socket, its log and the locks.
type folder struct {
	root    string
	cluster string
	sockets string
	log     string
	account account
}

// openFolder resolves a data folder, "" being the default one, and creates what is missing.
func openFolder(path string) (*folder, error) {
	asked := path != ""
	if !asked {
		path = defaultFolder("XDG_DATA_HOME", ".local/share")
	}
	path, err := canonical(path)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	f := &folder{root: path, cluster: filepath.Join(path, "cluster"), log: filepath.Join(path, "server.log")}
	if f.account, err = serverAccount(f.cluster); err != nil {
		return nil, err
	}
	if at := f.account.barrier(path); at != "" {
		if asked {
			return nil, fmt.Errorf("data folder %s is out of reach for user %s, who runs PostgreSQL because it refuses to run as root: "+
				"%s is closed to that user; choose another folder with --data (such as /var/lib/parley) or open the way with chmod o+x %s",
				path, f.account.name, at, at)
		}
		return openFolder("/var/lib/parley")
	}
	mode := os.FileMode(0o700)
	if f.account.switched {
		mode = 0o711
	}
	if err := ownpath.Require("data folder", path); err != nil {
		return nil, err
	}
	if err := makeFolder(path, mode); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	// Another user may have been faster where all may create.
	if err := ownpath.Require("data folder", path); err != nil {
		return nil, err
	}
	f.sockets = filepath.Join(path, "socket")
	if len(f.sockets)+len("/.s.PGSQL.65535") > socketPathMax {
		sum := sha256.Sum256([]byte(path))
		f.sockets = filepath.Join(os.TempDir(), fmt.Sprintf("parley-%d-%s", f.account.uid, hex.EncodeToString(sum[:6])))
	}
	return f, nil
}

// defaultFolder is where the user's data or caches go: the variable, else the folder below home, else, for
// those without a home, below the system's folder for temporary files.
func defaultFolder(variable, belowHome string) string {
	base := os.Getenv(variable)
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir()
		}
		base = filepath.Join(home, belowHome)
	}
	return filepath.Join(base, "parley")
}

// makeFolder creates a folder and what is missing above it, with this mode whatever our umask is.
func makeFolder(path string, mode os.FileMode) error {
	if _, err := os.Stat(path); err == nil || !os.IsNotExist(err) {
		return err
	}
	if err := makeFolder(filepath.Dir(path), mode); err != nil {
		return err
	}
	if err := os.Mkdir(path, mode); err != nil {
		if os.IsExist(err) {
			return nil
		}
		return err
	}
	return os.Chmod(path, mode)
}

// canonical makes a path absolute and follows links in the part of it that exists, because processes are
// recognised by the folder they work in.
func canonical(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	missing := ""
	for existing := path; ; existing = filepath.Dir(existing) {
		resolved, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return filepath.Join(resolved, missing), nil
		}
		if !os.IsNotExist(err) || existing == filepath.Dir(existing) {
			return "", err
		}
		missing = filepath.Join(filepath.Base(existing), missing)
	}
}

// makeSockets creates the folder of the socket. Only the server's account (and root) may enter it: that is
// what makes connections without a password safe.
func (f *folder) makeSockets() error {
	if err := os.Mkdir(f.sockets, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("create the socket folder: %w", err)
	} else if err == nil {
		if err := f.account.own(f.sockets); err != nil {
			return err
		}
	}
	// It may have been there, and in a folder where others can write.
	info, err := os.Lstat(f.sockets)
	if err != nil {
		return fmt.Errorf("check the socket folder: %w", err)
	}
	if !f.isSocketFolder(info) {
		return fmt.Errorf("socket folder %s must be a folder of user %s with mode 0700: remove it and try again", f.sockets, f.account.name)
	}
	return nil
}

func (f *folder) isSocketFolder(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm() == 0o700 && stat.Uid == f.account.uid
}

// clearSockets removes what a dead server left, whose lock file may name a process number that lives again.
func (f *folder) clearSockets() error {
	folder, err := os.OpenRoot(f.sockets)
	if err != nil {
		return fmt.Errorf("read the socket folder: %w", err)
	}
	defer folder.Close()
	// Its owner can have put a link in its place since it was checked: what counts is what was opened.
	if info, err := folder.Stat("."); err != nil || !f.isSocketFolder(info) {
		return fmt.Errorf("socket folder %s became another one: remove it and try again", f.sockets)
	}
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return fmt.Errorf("read the socket folder: %w", err)
	}
	for _, entry := range entries {
		if err := folder.Remove(entry.Name()); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("clear the socket folder: %w", err)
		}
	}
	return nil
}
