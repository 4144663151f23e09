//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the operating system user that runs PostgreSQL, which refuses to run as root.
type account struct {
	name string
	uid  uint32
	gid  uint32
	// switched is set when that is not the user who runs Parley.
	switched bool
}

// serverAccount chooses who runs the server of a cluster. Root hands it to the owner of the cluster when there
// is one, so that root and a user can share a folder, else to `postgres`, else to `nobody`.
func serverAccount(cluster string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: strconv.Itoa(uid), uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(cluster); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			name := strconv.FormatUint(uint64(stat.Uid), 10)
			if u, err := user.LookupId(name); err == nil {
				name = u.Username
			}
			return account{name: name, uid: stat.Uid, gid: stat.Gid, switched: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{name: name, uid: uint32(uid), gid: uint32(gid), switched: true}, nil
		}
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody to run it: " +
		"create one (useradd --system postgres), run parley as another user, or give --dsn")
}

// command prepares a program of PostgreSQL to run as this account.
func (a account) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = "/"
	cmd.Env = serverEnvironment()
	if a.switched {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
	return cmd
}

// serverEnvironment is ours without what would steer PostgreSQL behind our back.
func serverEnvironment() []string {
	env := []string{"LC_ALL=C"}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "PG") || strings.HasPrefix(name, "LC_") || name == "LANG" || name == keeperVariable {
			continue
		}
		env = append(env, entry)
	}
	return env
}

// own hands a file or folder to the account.
func (a account) own(path string) error {
	if !a.switched {
		return nil
	}
	if err := os.Lchown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give %s to user %s: %w", path, a.name, err)
	}
	return nil
}

// barrier returns the first folder on the way to path that the account may not pass, and "" if it may pass
// them all. Folders that do not exist yet are ours to create.
func (a account) barrier(path string) string {
	if !a.switched {
		return ""
	}
	current := string(filepath.Separator)
	for part := range strings.SplitSeq(filepath.Clean(path), string(filepath.Separator)) {
		current = filepath.Join(current, part)
		info, err := os.Stat(current)
		if err != nil {
			return ""
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return ""
		}
		var search os.FileMode
		switch {
		case stat.Uid == a.uid:
			search = 0o100
		case stat.Gid == a.gid:
			search = 0o010
		default:
			search = 0o001
		}
		if info.Mode().Perm()&search == 0 {
			return current
		}
	}
	return ""
}
