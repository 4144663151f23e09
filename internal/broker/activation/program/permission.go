package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Permission is the operator's leave for definitions in the database. The zero value allows nothing.
type Permission struct {
	// Programs are full paths of programs, or of folders whose programs are all allowed, those in folders below included. The author of an
	// activation chooses the arguments: an interpreter or a shell here gives away the host.
	Programs []string
	// Directories may be worked in, with the folders below, besides the folder of the program itself.
	Directories []string
	// Environment names variables that may be set; a * at the end stands for any ending.
	Environment []string
}

// ErrNotAllowed is the error of definitions that ask for more than the operator allows.
var ErrNotAllowed = errors.New("not allowed by the operator of this daemon")

// program gives the file to start: links are followed, so that the permission is for what really runs.
func (p Permission) program(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		// Whether a file exists is nobody's business who may not start it.
		if !within(filepath.Clean(path), p.Programs) {
			return "", notAllowed("program", path, "--allow-program")
		}
		return "", fmt.Errorf("find the program: %w", err)
	}
	if !within(resolved, resolveAll(p.Programs)) {
		return "", notAllowed("program", path, "--allow-program")
	}
	return resolved, nil
}

// directory gives the folder to work in.
func (p Permission) directory(path *string, program string) (string, error) {
	home := filepath.Dir(program)
	if path == nil {
		return home, nil
	}
	resolved, err := filepath.EvalSymlinks(*path)
	if err != nil || resolved != home && !within(resolved, resolveAll(p.Directories)) {
		return "", notAllowed("working directory", *path, "--allow-program-directory")
	}
	return resolved, nil
}

// environment gives the variables to set.
func (p Permission) environment(variables map[string]string) ([]string, error) {
	var list []string
	for name, value := range variables {
		if !p.allowsVariable(name) {
			return nil, notAllowed("variable", name, "--allow-program-environment")
		}
		list = append(list, name+"="+value)
	}
	return list, nil
}

func (p Permission) allowsVariable(name string) bool {
	for _, allowed := range p.Environment {
		if prefix, open := strings.CutSuffix(allowed, "*"); open && strings.HasPrefix(name, prefix) || allowed == name {
			return true
		}
	}
	return false
}

func notAllowed(what, which, flag string) error {
	return fmt.Errorf("%s %s is %w; allow it with parley serve %s", what, which, ErrNotAllowed, flag)
}

// within reports whether a path is one of those allowed, or lies below it.
func within(path string, allowed []string) bool {
	for _, root := range allowed {
		root = filepath.Clean(root)
		if !filepath.IsAbs(root) {
			continue
		}
		if path == root || strings.HasPrefix(path, strings.TrimSuffix(root, string(os.PathSeparator))+string(os.PathSeparator)) {
			return true
		}
	}
	return false
}

func resolveAll(paths []string) []string {
	var resolved []string
	for _, path := range paths {
		if target, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			resolved = append(resolved, target)
		}
	}
	return resolved
}
