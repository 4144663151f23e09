package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ofModule gives the version of a module of this program.
func ofModule(path string) func(context.Context, *pgx.Conn) string {
	return func(context.Context, *pgx.Conn) string {
		info, isThere := debug.ReadBuildInfo()
		if !isThere {
			return ""
		}
		for _, module := range info.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
		return ""
	}
}

// ofExtension gives the version of an extension that the server would install.
func ofExtension(name string) func(context.Context, *pgx.Conn) string {
	return func(ctx context.Context, conn *pgx.Conn) (version string) {
		_ = conn.QueryRow(ctx, "select e.default_version from pg_available_extensions as e where e.name = $1", name).Scan(&version)
		return version
	}
}

// ofPGMQ gives the version of its extension. Its file of SQL does not say its own, so that is known by its hash.
func ofPGMQ(ctx context.Context, conn *pgx.Conn) string {
	file := os.Getenv(pgmqVariable)
	if file == "" {
		return ofExtension("pgmq")(ctx, conn)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("SQL with SHA-256 %.8x", sha256.Sum256(written))
}

// rabbitVersion is in the name of the folder of the installed program; that of a given server is not asked.
func rabbitVersion(context.Context, *pgx.Conn) string {
	folders, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(rabbitServer)), "lib", "rabbitmq_server-*"))
	if os.Getenv(rabbitVariable) != "" || len(folders) != 1 {
		return ""
	}
	_, version, _ := strings.Cut(filepath.Base(folders[0]), "-")
	return version
}
