// Package sql carries the schema `parley`: the broker itself, written in SQL and PL/pgSQL.
//
// Each file holds one concept and stands in the folder of its system and its concern. The file manifest lists them in the
// order in which they are installed, one a line.
package sql

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// Files holds the manifest and every file of the schema.
//
//go:embed manifest */*/*.sql
var Files embed.FS

// Manifest gives the names of a schema's files, with their folders, in the order in which they are installed. Blank lines and lines
// that begin with # are comments.
func Manifest(files fs.FS) ([]string, error) {
	manifest, err := files.Open("manifest")
	if err != nil {
		return nil, fmt.Errorf("open the manifest of the schema: %w", err)
	}
	defer manifest.Close()
	var names []string
	for lines := bufio.NewScanner(manifest); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	return names, nil
}
