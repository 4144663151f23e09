//go:build unix

package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// superuser is the role that owns the cluster.
const superuser = "postgres"

// passwordFile holds the password of the superuser; it counts for TCP only.
const passwordFile = "password"

// accessRules let in processes that can enter the socket folder, and over TCP, if it is asked for, those that have the password.
const accessRules = `# Written by parley when the cluster was made.
local all all trust
local replication all trust
host all all 127.0.0.1/32 scram-sha-256
host all all ::1/128 scram-sha-256
`

// clusterMajor is the major version that made the cluster, 0 if there is none.
func (f *folder) clusterMajor() (int, error) {
	text, err := readWithin(filepath.Join(f.cluster, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the cluster: %w", err)
	}
	major, err := parseMajor(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("cluster in %s: %w", f.root, err)
	}
	return major, nil
}

// createCluster makes a new cluster. It gets its name last, so that one with a name is whole.
func createCluster(ctx context.Context, f *folder, programs installation, log *slog.Logger) error {
	log.Info("creating a PostgreSQL cluster", "version", programs.major, "folder", f.root)
	fresh := f.cluster + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear an unfinished cluster: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	if err := f.account.own(fresh); err != nil {
		return err
	}
	password := rand.Text()
	secret := filepath.Join(f.root, passwordFile)
	if err := writeFor(f.account, secret, password+"\n"); err != nil {
		return err
	}

	var failure error
	for _, locale := range locales(programs.major) {
		args := append([]string{
			"--pgdata", fresh, "--username", superuser, "--pwfile", secret,
			"--encoding", "UTF8", "--data-checksums", "--auth-local", "trust", "--auth-host", "scram-sha-256",
		}, locale...)
		cmd := f.account.command(programs.program("initdb"), args...)
		out, err := runUntil(ctx, cmd)
		if ctx.Err() != nil {
			return fmt.Errorf("create the cluster: %w", context.Cause(ctx))
		}
		if err == nil {
			failure = nil
			break
		}
		failure = fmt.Errorf("create the cluster: initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	if failure != nil {
		return failure
	}

	if err := writeFor(f.account, filepath.Join(fresh, "pg_hba.conf"), accessRules); err != nil {
		return err
	}
	config := filepath.Join(fresh, "postgresql.conf")
	text, err := readWithin(config)
	if err != nil {
		return fmt.Errorf("read the new configuration: %w", err)
	}
	if err := writeFor(f.account, config, string(text)+"\ninclude_if_exists = '"+settingsFile+"'\n"); err != nil {
		return err
	}
	if err := os.Rename(fresh, f.cluster); err != nil {
		return fmt.Errorf("keep the new cluster: %w", err)
	}
	return nil
}

// locales are the ones to try, best first: sorted by code point, with Unicode letters where there is a way.
func locales(major int) [][]string {
	if major >= 17 {
		return [][]string{{"--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"}}
	}
	return [][]string{{"--locale", "C.UTF-8"}, {"--locale", "C"}}
}

// supports asks the server whether it takes a setting's value, which can depend on how it was built.
func supports(ctx context.Context, f *folder, programs installation, setting, value string) bool {
	_, err := runUntil(ctx, f.account.command(programs.program("postgres"),
		"-D", f.cluster, "-C", setting, "-c", setting+"="+value))
	return err == nil
}
