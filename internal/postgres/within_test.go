//go:build unix

package postgres

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asServer runs a command as the account that runs the server, which is not ours.
func asServer(t *testing.T, arguments ...string) error {
	t.Helper()
	as, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: as.uid, Gid: as.gid}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(string(out) + err.Error())
	}
	return nil
}

// rootsFolder is a data folder of root's with a cluster of another account's, and a file of root's that this account wants.
func rootsFolder(t *testing.T) (f *folder, wanted string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root hands the server to another user")
	}
	path := emptyFolder(t)
	f, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.cluster, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.account.own(f.cluster); err != nil {
		t.Fatal(err)
	}
	wanted = filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(wanted, []byte("17"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f, wanted
}

func TestRootWritesThroughNoLinkOfTheServersAccount(t *testing.T) {
	t.Parallel()
	for _, name := range []string{settingsFile, settingsFile + ".new"} {
		for kind, plant := range map[string][]string{"symbolic": {"ln", "-s"}, "to a folder": {"ln", "-s"}} {
			f, wanted := rootsFolder(t)
			target := wanted
			if kind == "to a folder" {
				target = filepath.Dir(wanted)
			}
			if err := asServer(t, append(plant, target, filepath.Join(f.cluster, name))...); err != nil {
				t.Fatal(err)
			}
			if err := writeSettings(f, map[string]string{"port": "1"}); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
			info, err := os.Stat(wanted)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(wanted)
			if err != nil || string(text) != "17" || info.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("%s, %s: root's file was written or given away: %q, %v", name, kind, text, err)
			}
			if entries, _ := os.ReadDir(filepath.Dir(wanted)); len(entries) != 1 {
				t.Errorf("%s, %s: something was written beside it: %v", name, kind, entries)
			}
			if text, err := readWithin(filepath.Join(f.cluster, settingsFile)); err != nil || !strings.Contains(string(text), "port = '1'") {
				t.Errorf("%s, %s: the settings are %q, %v", name, kind, text, err)
			}
		}
	}
}

func TestRootReadsNothingThroughALinkOfTheServersAccount(t *testing.T) {
	t.Parallel()
	for kind, plant := range map[string]func(wanted, name string) []string{
		"link": func(wanted, name string) []string { return []string{"ln", "-s", wanted, name} },
		"pipe": func(_, name string) []string { return []string{"mkfifo", name} },
	} {
		f, wanted := rootsFolder(t)
		for _, name := range []string{"PG_VERSION", "postmaster.pid", "postgresql.conf"} {
			path := filepath.Join(f.cluster, name)
			if err := asServer(t, plant(wanted, path)...); err != nil {
				t.Fatal(err)
			}
			if text, err := readWithin(path); err == nil || len(text) > 0 {
				t.Errorf("%s as %s: read %q, %v", kind, name, text, err)
			}
		}
		if major, err := f.clusterMajor(); err == nil {
			t.Errorf("%s: the version of the cluster is %d", kind, major)
		}
	}
}

func TestTheLogAndTheLocksAreNotOpenedThroughALink(t *testing.T) {
	t.Parallel()
	f, wanted := rootsFolder(t)
	if err := os.Symlink(wanted, f.log); err != nil {
		t.Fatal(err)
	}
	if log, _, err := f.openLog(); err == nil {
		_ = log.Close()
		t.Error("the log is written through a link")
	}
	path := filepath.Join(f.root, startLock)
	if err := os.Symlink(wanted, path); err != nil {
		t.Fatal(err)
	}
	if lock, err := openLock(path); err == nil {
		lock.close()
		t.Error("a lock is opened through a link")
	}
}

func TestNobodyElseLocksTheDataFolder(t *testing.T) {
	t.Parallel()
	f, _ := rootsFolder(t)
	path := filepath.Join(f.root, startLock)
	// As an earlier release made it.
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	lock, err := openLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.close()
	if err := asServer(t, "flock", "--nonblock", path, "true"); err == nil {
		t.Error("another user locked the data folder")
	}
}

func TestAFolderThatOthersMayWriteIsRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(t *testing.T, base string){
		"open to all": func(t *testing.T, base string) {
			if err := os.Chmod(base, 0o777); err != nil {
				t.Fatal(err)
			}
		},
		"of another user": func(t *testing.T, base string) {
			if os.Geteuid() != 0 {
				t.Skip("only root gives a folder away")
			}
			as, err := serverAccount("")
			if err != nil {
				t.Fatal(err)
			}
			if err := as.own(base); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := filepath.Join(emptyFolder(t), "base")
			if err := os.Mkdir(base, 0o755); err != nil {
				t.Fatal(err)
			}
			arrange(t, base)
			for _, path := range []string{base, filepath.Join(base, "data")} {
				_, err := openFolder(path)
				if err == nil || !strings.Contains(err.Error(), base) || !strings.Contains(err.Error(), "choose") {
					t.Errorf("data folder %s: got %v, want the folder and the way out", path, err)
				}
				if as, asErr := serverAccount(""); asErr == nil {
					if _, err := openCache(path, as); err == nil {
						t.Errorf("cache folder %s is taken", path)
					}
				}
			}
		})
	}
}
