//go:build unix

package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// oldestMajor is the oldest version whose SQL Parley speaks.
const oldestMajor = 14

// installation is a set of PostgreSQL programs.
type installation struct {
	bin          string
	major, minor int
}

func (i installation) program(name string) string { return filepath.Join(i.bin, name) }

// places are where packages put PostgreSQL when it is not on the PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/usr/local/opt/postgresql*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
}

// findInstalled returns the newest installation, or the newest of one major version (0: any).
// A folder given by name is the only one checked, and must fit.
func findInstalled(named string, major int, as account) (installation, bool, error) {
	if named != "" {
		found, err := inspect(named, as)
		if err != nil {
			return installation{}, false, err
		}
		if major != 0 && found.major != major {
			return installation{}, false, fmt.Errorf("%s holds PostgreSQL %d, not %d", named, found.major, major)
		}
		return found, true, nil
	}
	var best installation
	for _, bin := range candidates() {
		found, err := inspect(bin, as)
		if err != nil || found.major < oldestMajor || major != 0 && found.major != major {
			continue
		}
		if found.major > best.major || found.major == best.major && found.minor > best.minor {
			best = found
		}
	}
	return best, best.bin != "", nil
}

func candidates() []string {
	var found []string
	if program, err := exec.LookPath("postgres"); err == nil {
		// The programs stand side by side where the link points to, not where it lies.
		if program, err = filepath.EvalSymlinks(program); err == nil {
			found = append(found, filepath.Dir(program))
		}
	}
	for _, place := range places {
		matches, _ := filepath.Glob(place)
		found = append(found, matches...)
	}
	return found
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// inspect asks the programs in a folder for their version, as the account that will run them.
func inspect(bin string, as account) (installation, error) {
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return installation{}, fmt.Errorf("no PostgreSQL server in %s: %w", bin, err)
		}
	}
	out, err := as.command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return installation{}, fmt.Errorf("run the PostgreSQL in %s as user %s: %w", bin, as.name, err)
	}
	match := versionPattern.FindStringSubmatch(string(out))
	if match == nil {
		return installation{}, fmt.Errorf("%s/postgres does not show its version: %q", bin, strings.TrimSpace(string(out)))
	}
	major, _ := strconv.Atoi(match[1])
	minor, _ := strconv.Atoi(match[2])
	return installation{bin: bin, major: major, minor: minor}, nil
}

// parseMajor reads a version as people write it, "18" or "18.3". Empty means no wish and gives 0.
func parseMajor(version string) (int, error) {
	if version == "" {
		return 0, nil
	}
	text, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("PostgreSQL version %q is not a major version such as 18", version)
	}
	if major < oldestMajor {
		return 0, fmt.Errorf("PostgreSQL %d is too old: Parley needs %d or newer", major, oldestMajor)
	}
	return major, nil
}
