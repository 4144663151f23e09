package layering

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/parley-broker/parley"

// A goFile is a Go source file of the repository; paths use slashes and are relative to the root.
type goFile struct {
	path        string
	pkg         string // directory, "parley" for the root
	packageName string
	imports     []string
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// root finds the folder of the module above the test's own.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// paths lists the files of the repository with one of these endings, without hidden folders and test data.
func paths(t *testing.T, endings ...string) []string {
	t.Helper()
	top := root(t)
	var found []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, ending := range endings {
			if strings.HasSuffix(path, ending) {
				relative, err := filepath.Rel(top, path)
				if err != nil {
					return err
				}
				found = append(found, filepath.ToSlash(relative))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goFiles reads the package clause and the imports of every Go file, whatever its build tags.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, path := range paths(t, ".go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, read(t, path), parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		f := goFile{path: path, pkg: packageOf(filepath.ToSlash(filepath.Dir(path))), packageName: parsed.Name.Name}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
	}
	return files
}

// packageOf names a package of ours as the table does.
func packageOf(dir string) string {
	if dir == "." || dir == "" {
		return "parley"
	}
	return dir
}

// isFolder tells whether a package of ours has a folder.
func isFolder(t *testing.T, pkg string) bool {
	t.Helper()
	if pkg == packageOf(".") {
		return true
	}
	info, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(pkg)))
	return err == nil && info.IsDir()
}

// ours gives the name of a package of this module, or "" for any other.
func ours(imported string) string {
	rest, ok := strings.CutPrefix(imported, modulePath)
	if !ok {
		return ""
	}
	return packageOf(strings.TrimPrefix(rest, "/"))
}

// isStandard tells whether an import belongs to the standard library, whose paths begin without a dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
