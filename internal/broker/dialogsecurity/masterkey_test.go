package dialogsecurity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMasterKeyOpensWhatItHasSealedForOnePurpose(t *testing.T) {
	t.Parallel()
	keys := masterKeys(t)
	sealed, err := keys.Seal([]byte("secret"), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := keys.Open(sealed, []byte("a")); err != nil || string(secret) != "secret" {
		t.Errorf("opened %q, %v", secret, err)
	}
	if _, err := keys.Open(sealed, []byte("b")); !errors.Is(err, ErrSpoiled) {
		t.Errorf("for another purpose: %v", err)
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := keys.Open(sealed, []byte("a")); !errors.Is(err, ErrSpoiled) {
		t.Errorf("changed: %v", err)
	}
	if _, err := keys.Open(nil, nil); !errors.Is(err, ErrSpoiled) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := masterKeys(t).Open(sealed, []byte("a")); !errors.Is(err, ErrOtherMasterKey) {
		t.Errorf("another key: %v", err)
	}
	var none *MasterKeys
	if _, err := none.Open(sealed, []byte("a")); !errors.Is(err, ErrNoMasterKey) {
		t.Errorf("no key: %v", err)
	}
	if _, err := none.Seal(sealed, nil); !errors.Is(err, ErrNoMasterKey) {
		t.Errorf("sealed without a key: %v", err)
	}
}

// A daemon that runs while the key is changed reads the file again when it meets the new one.
func TestMasterKeyIsChangedUnderARunningDaemon(t *testing.T) {
	t.Parallel()
	daemon := masterKeys(t)
	old, err := daemon.Seal([]byte("old"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := AddMasterKey(daemon.path); err != nil {
		t.Fatal(err)
	}
	command, err := OpenMasterKeys(daemon.path)
	if err != nil {
		t.Fatal(err)
	}
	if command.Current() == daemon.Current() {
		t.Error("the key is the old one")
	}
	sealed, err := command.Seal([]byte("new"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := daemon.Open(sealed, nil); err != nil || string(secret) != "new" {
		t.Errorf("the daemon opened %q, %v", secret, err)
	}
	if secret, err := command.Open(old, nil); err != nil || string(secret) != "old" {
		t.Errorf("what the old key has sealed: %q, %v", secret, err)
	}
	if err := ForgetOldMasterKeys(daemon.path); err != nil {
		t.Fatal(err)
	}
	later, err := OpenMasterKeys(daemon.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := later.Open(old, nil); !errors.Is(err, ErrOtherMasterKey) {
		t.Errorf("the old key was forgotten: %v", err)
	}
	if later.Current() != command.Current() {
		t.Error("the wrong key was forgotten")
	}
}

func TestMasterKeyFileIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	keys := masterKeys(t)
	info, err := os.Stat(keys.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	before, _ := os.ReadFile(keys.path)
	if err := CreateMasterKey(keys.path); err != nil {
		t.Errorf("created again: %v", err)
	}
	if after, _ := os.ReadFile(keys.path); string(after) != string(before) {
		t.Error("creating a key that is there has changed it")
	}
	if err := os.Chmod(keys.path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMasterKeys(keys.path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
	for _, text := range []string{"", "# nothing\n", "c2hvcnQ=\n", "no base64!\n"} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenMasterKeys(path); err == nil {
			t.Errorf("%q passes for a key", text)
		}
	}
}
