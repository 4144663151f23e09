//go:build unix

package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ulikunitz/xz"
)

// repository has builds of PostgreSQL as Maven artefacts: a jar with one archive of programs in it, and its SHA-256 beside it.
const repository = "https://repo1.maven.org/maven2/io/zonky/test/postgres"

const (
	// largestBuild bounds what is downloaded, in bytes; a build has some 30 MB.
	largestBuild = 256 << 20
	// largestProgram bounds one file of a build, in bytes.
	largestProgram = 1 << 30
)

var errNoArchive = errors.New("the build has no archive of programs")

// platform is how builds name an operating system and an architecture. Builds for Alpine stand on another C library.
func platform(system, architecture string, isAlpine bool) string {
	switch architecture {
	case "arm64":
		architecture = "arm64v8"
	case "arm":
		architecture = "arm32v7"
	}
	name := system + "-" + architecture
	if isAlpine {
		name += "-alpine"
	}
	return name
}

// unpack downloads a build, verifies it and unpacks it into a folder.
func unpack(ctx context.Context, from, version, folder string) error {
	_, err := os.Stat("/etc/alpine-release")
	name := "embedded-postgres-binaries-" + platform(runtime.GOOS, runtime.GOARCH, err == nil)
	address := fmt.Sprintf("%s/%s/%s/%s-%s.jar", from, name, version, name, version)
	jar, err := download(ctx, address, largestBuild)
	if err != nil {
		return err
	}
	wanted, err := download(ctx, address+".sha256", 1<<10)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(jar); hex.EncodeToString(sum[:]) != strings.ToLower(strings.TrimSpace(string(wanted))) {
		return fmt.Errorf("what came from %s does not have the SHA-256 that is given there", address)
	}
	build, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return fmt.Errorf("read the build: %w", err)
	}
	for _, file := range build.File {
		if strings.HasSuffix(file.Name, ".txz") {
			return unpackArchive(ctx, file, folder)
		}
	}
	return errNoArchive
}

// download gives the bytes at an address, up to so many.
func download(ctx context.Context, address string, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", address, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("download %s: the answer is %s", address, response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("download %s: %w", address, err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("download %s: it has more than %d bytes", address, most)
	}
	return content, nil
}

// unpackArchive unpacks a tar file that xz has compressed. Nothing of it gets outside of the folder.
func unpackArchive(ctx context.Context, file *zip.File, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // The server runs its programs as another user.
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open the folder of the programs: %w", err)
	}
	defer func() { _ = root.Close() }()
	packed, err := file.Open()
	if err != nil {
		return fmt.Errorf("read the archive of programs: %w", err)
	}
	defer func() { _ = packed.Close() }()
	plain, err := xz.NewReader(packed)
	if err != nil {
		return fmt.Errorf("read the archive of programs: %w", err)
	}
	archive := tar.NewReader(plain)
	for ctx.Err() == nil {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackEntry(root, header, archive)
		}
		if err != nil {
			return fmt.Errorf("unpack the programs: %w", err)
		}
	}
	return context.Cause(ctx)
}

// unpackEntry unpacks a folder, a link or a file.
func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(header.Name)
	if name == "." {
		return nil
	}
	if parent := filepath.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		target := filepath.Join(filepath.Dir(name), header.Linkname) //nolint:gosec // The next line refuses one outside of the build.
		if !filepath.IsLocal(target) || filepath.IsAbs(header.Linkname) {
			return fmt.Errorf("the link %s leads out of the build", name)
		}
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm()|0o600)
		if err != nil {
			return err
		}
		n, err := io.Copy(file, io.LimitReader(content, largestProgram))
		if err == nil && n != header.Size {
			err = fmt.Errorf("%s has more than %d bytes", name, largestProgram)
		}
		return errors.Join(err, file.Close())
	}
	return nil
}
