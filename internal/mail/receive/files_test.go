package receive_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// An administrator of mail may name any path: none of them keeps the daemon waiting or fills its memory, and the error shows nobody what is
// there. Certificates and authorities are read of regular files alone.
func TestConfiguredFileIsARegularOneOfBoundedSize(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	folders := permit(t, folder)
	in := func(name string) string { return filepath.Join(folder, name) }
	good := receive.CertificateFiles{Certificate: in("good.crt"), Key: in("good.key"), Folders: folders}
	other := receive.CertificateFiles{Certificate: in("other.crt"), Key: in("other.key"), Folders: folders}
	write(t, good, "a.example")
	write(t, other, "b.example")
	certificate, err := os.ReadFile(good.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	padded := func(size int) []byte {
		return append(slices.Clip(certificate), make([]byte, size-len(certificate))...)
	}
	if err := errors.Join(syscall.Mkfifo(in("pipe"), 0o600), os.WriteFile(in("large"), padded(1<<20+1), 0o600),
		os.WriteFile(in("full"), padded(1<<20), 0o600), os.WriteFile(in("text"), []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		good.Certificate: "", in("full"): "", in("text"): " is not a file of certificates", folder: " cannot be read",
		in("pipe"): " cannot be read", in("large"): " cannot be read", in("missing"): " cannot be read",
	} {
		_, err := receive.LoadAuthorities(folders, path)
		requireText(t, err, path, want)
		_, err = receive.CertificateFiles{Certificate: path, Key: good.Key, Folders: folders}.Load()
		if path == in("text") {
			want = " with the key " + good.Key + " is not a certificate and its key that match"
		}
		requireText(t, err, path, want)
		if want == "" {
			continue
		}
		_, err = receive.CertificateFiles{Certificate: good.Certificate, Key: path, Folders: folders}.Load()
		if path == in("text") {
			requireText(t, err, good.Certificate, " with the key "+path+" is not a certificate and its key that match")
			continue
		}
		requireText(t, err, path, want)
	}
	// A device without an end, where the operator has permitted even that.
	_, err = receive.LoadAuthorities(permit(t, "/dev"), "/dev/zero")
	requireText(t, err, "/dev/zero", " cannot be read")
	// A file that he has not permitted is not read: not by its own name, and not behind a link.
	if err := os.Symlink(good.Certificate, in("link")); err != nil {
		t.Fatal(err)
	}
	within := permit(t, t.TempDir())
	if _, err = receive.LoadAuthorities(within, good.Certificate); !errors.Is(err, hostfolders.ErrNotPermitted) {
		t.Errorf("a file outside: %v", err)
	}
	for _, files := range []receive.CertificateFiles{
		{Certificate: good.Certificate, Key: good.Key, Folders: within}, {Certificate: good.Certificate, Key: good.Key},
	} {
		if _, err = files.Load(); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("a certificate outside: %v", err)
		}
		if _, err = receive.NewCertificates(slog.New(slog.DiscardHandler), files); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("a certificate outside: %v", err)
		}
	}
	_, err = receive.LoadAuthorities(folders, in("link"))
	requireText(t, err, in("link"), " cannot be read")
	_, err = receive.CertificateFiles{Certificate: good.Certificate, Key: other.Key, Folders: folders}.Load()
	requireText(t, err, good.Certificate, " with the key "+other.Key+" is not a certificate and its key that match")
	// When a certificate ends is known whatever its key is.
	for _, c := range []struct {
		certificate, key string
		isKnown          bool
	}{{good.Certificate, good.Key, true}, {good.Certificate, other.Key, true}, {good.Certificate, in("missing"), true}, {in("text"), good.Key, false}, {in("missing"), good.Key, false}} {
		pair, end, err := receive.CertificateFiles{Certificate: c.certificate, Key: c.key, Folders: folders}.LoadWithEnd()
		if end.IsZero() == c.isKnown || (err == nil) != (pair != nil) {
			t.Errorf("%s with the key %s ends at %v: %v", c.certificate, c.key, end, err)
		}
	}
}

// requireText requires that an error says of a file what is wanted and no more, and keeps its cause for the log.
func requireText(t *testing.T, err error, path, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return
	}
	file, is := errors.AsType[*receive.FileError](err)
	if !is || file.Error() != path+want || file.Cause == nil {
		t.Errorf("%s: the error is %v", path, err)
	}
}
