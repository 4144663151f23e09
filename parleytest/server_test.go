package parleytest

import (
	"strings"
	"testing"
)

func TestFolderOfTheServersMustBeAFullPath(t *testing.T) {
	t.Parallel()
	for _, relative := range []string{"parley", "./parley", "../parley", "~/parley"} {
		if folder, err := serverFolder(relative); err == nil || !strings.Contains(err.Error(), folderVariable) || !strings.Contains(err.Error(), relative) {
			t.Errorf("%s gives %q, %v", relative, folder, err)
		}
	}
	if folder, err := serverFolder("/dev/shm/parley"); err != nil || folder != "/dev/shm/parley" {
		t.Errorf("got %q, %v", folder, err)
	}
	if folder, err := serverFolder(""); err != nil || folder == "" {
		t.Errorf("without a name: got %q, %v", folder, err)
	}
}
