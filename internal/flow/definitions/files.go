package definitions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders that a folder of definitions may have beside them.
const (
	environmentsFolder = "environments"
	schemasFolder      = "schemas"
)

func (s Source) isJSON() bool { return strings.EqualFold(filepath.Ext(s.Name), ".json") }

func isDefinitions(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return !strings.HasPrefix(filepath.Base(name), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
}

// Find gives the files that arguments name: a file itself, of a folder its files of YAML and JSON and those of the folders in it, in the
// order of their names. Folders called environments and schemas, and names that begin with a dot, are passed over. A name of - is
// standard input, which holds YAML.
func Find(arguments []string, input io.Reader) ([]Source, error) {
	sources := []Source{}
	for _, argument := range arguments {
		if argument == "-" {
			written, err := io.ReadAll(io.LimitReader(input, sizeMax+1))
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			sources = append(sources, Source{"-", written})
			continue
		}
		names, err := below(argument)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			source, err := readFile(name)
			if err != nil {
				return nil, err
			}
			sources = append(sources, source)
		}
	}
	return sources, nil
}

func below(argument string) ([]string, error) {
	info, err := os.Stat(argument)
	if err != nil {
		return nil, fmt.Errorf("find the definitions: %w", err)
	}
	if !info.IsDir() {
		return []string{argument}, nil
	}
	names := []string{}
	err = filepath.WalkDir(argument, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			base := filepath.Base(name)
			if name != argument && (base == environmentsFolder || base == schemasFolder || strings.HasPrefix(base, ".")) {
				return fs.SkipDir
			}
		case isDefinitions(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the folder of definitions: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("folder %s has no definitions: put files into it that end in .yaml, .yml or .json", argument)
	}
	return names, nil
}

// FindEnvironment gives the files of an environment: environments/NAME.yaml, .yml or .json in each folder, or beside each file, that
// arguments name.
func FindEnvironment(arguments []string, environment string) ([]Source, error) {
	sources, searched := []Source{}, []string{}
	for _, argument := range arguments {
		folder := argument
		if info, err := os.Stat(argument); err != nil || !info.IsDir() {
			folder = filepath.Dir(argument)
		}
		folder = filepath.Join(folder, environmentsFolder)
		if slices.Contains(searched, folder) {
			continue
		}
		searched = append(searched, folder)
		for _, extension := range []string{".yaml", ".yml", ".json"} {
			source, err := readFile(filepath.Join(folder, environment+extension))
			switch {
			case err == nil:
				sources = append(sources, source)
			case !errors.Is(err, fs.ErrNotExist):
				return nil, err
			}
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("there is no environment %q: write its variables into %s", environment,
			filepath.Join(searched[0], environment+".yaml"))
	}
	return sources, nil
}

func readFile(name string) (Source, error) {
	file, err := os.Open(name)
	if err != nil {
		return Source{}, fmt.Errorf("read definitions: %w", err)
	}
	defer file.Close()
	written, err := io.ReadAll(io.LimitReader(file, sizeMax+1))
	if err != nil {
		return Source{}, fmt.Errorf("read definitions: %w", err)
	}
	return Source{name, written}, nil
}
