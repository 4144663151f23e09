//go:build unix

package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// build packs entries as a build of PostgreSQL is packed.
func build(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var packed, jar bytes.Buffer
	compressed, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	for _, entry := range entries {
		if entry.Typeflag == tar.TypeReg {
			entry.Size = int64(len("content"))
		}
		if err := archive.WriteHeader(&entry); err != nil {
			t.Fatal(err)
		}
		if entry.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(archive, "content")
		}
	}
	file := zip.NewWriter(&jar)
	w, err := file.Create("postgres-linux-x86_64.txz")
	if err != nil || archive.Close() != nil || compressed.Close() != nil {
		t.Fatal("the archive cannot be made")
	}
	if _, err := w.Write(packed.Bytes()); err != nil || file.Close() != nil {
		t.Fatal("the build cannot be made")
	}
	return jar.Bytes()
}

// A build is unpacked where it is what its repository says, and nothing of it gets outside of its folder.
func TestBuildIsVerifiedAndStaysInItsFolder(t *testing.T) {
	t.Parallel()
	good := []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./bin/postgres", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "lib/libpq.so.5.15", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "lib/libpq.so", Typeflag: tar.TypeSymlink, Linkname: "libpq.so.5.15"},
	}
	for name, c := range map[string]struct {
		entries []tar.Header
		sum     string // "" for the right one
		fails   string
	}{
		"good":                   {good, "", ""},
		"another sum":            {good, strings.Repeat("0", 64), "SHA-256"},
		"no sum":                 {good, "none", "404"},
		"a name outside":         {[]tar.Header{{Name: "../outside", Typeflag: tar.TypeReg, Mode: 0o644}}, "", "escapes"},
		"a link outside":         {[]tar.Header{{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "../.."}}, "", "leads out"},
		"a link to a full path":  {[]tar.Header{{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, "", "leads out"},
		"the same file twice":    {[]tar.Header{good[1], good[1]}, "", "exists"},
		"a link inside, and out": {[]tar.Header{{Name: "a/b", Typeflag: tar.TypeSymlink, Linkname: "../../c"}}, "", "leads out"},
	} {
		jar := build(t, c.entries...)
		sum := sha256.Sum256(jar)
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch isSum := strings.HasSuffix(r.URL.Path, ".jar.sha256"); {
			case !strings.Contains(r.URL.Path, "/15.13.0/") || isSum && c.sum == "none":
				http.NotFound(w, r)
			case isSum && c.sum != "":
				_, _ = io.WriteString(w, c.sum)
			case isSum:
				_, _ = io.WriteString(w, hex.EncodeToString(sum[:])+"\n")
			default:
				_, _ = w.Write(jar)
			}
		}))
		folder := filepath.Join(t.TempDir(), "programs")
		err := unpack(t.Context(), host.URL, "15.13.0", folder)
		host.Close()
		if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		}
		if c.fails != "" {
			continue
		}
		info, err := os.Stat(filepath.Join(folder, "bin", "postgres"))
		linked, readErr := os.ReadFile(filepath.Join(folder, "lib", "libpq.so"))
		if err != nil || info.Mode().Perm()&0o100 == 0 || readErr != nil || string(linked) != "content" {
			t.Errorf("%s: unpacked with %v, %v, %q", name, err, readErr, linked)
		}
	}
	for want, got := range map[string]string{
		"linux-amd64": platform("linux", "amd64", false), "linux-arm64v8-alpine": platform("linux", "arm64", true), "darwin-arm64v8": platform("darwin", "arm64", false),
	} {
		if got != want {
			t.Errorf("the platform is %s, want %s", got, want)
		}
	}
}
