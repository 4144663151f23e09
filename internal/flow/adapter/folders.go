package adapter

import (
	"fmt"
	"os"
	"path/filepath"
)

// OpenFolder opens the permitted folder that a folder is below, or is, and gives the path from there. Every step from it stays in it: a
// link cannot lead out, whenever it was put there.
func (p Permission) OpenFolder(folder string) (permitted *os.Root, rest string, err error) {
	if err := p.CheckFolder(folder); err != nil {
		return nil, "", err
	}
	longest := ""
	for _, one := range p.Folders {
		one = filepath.Clean(one)
		inside, err := filepath.Rel(one, filepath.Clean(folder))
		if err == nil && filepath.IsLocal(inside) && len(one) > len(longest) {
			longest, rest = one, inside
		}
	}
	permitted, err = os.OpenRoot(longest)
	if err != nil {
		return nil, "", fmt.Errorf("open the permitted folder %s: %w", longest, err)
	}
	return permitted, rest, nil
}
