package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func newFolder(t *testing.T) *Folder {
	t.Helper()
	f, err := OpenFolder(filepath.Join(t.TempDir(), "identity"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func create(t *testing.T, f *Folder) *Certificate {
	t.Helper()
	c, isNew, err := f.Create(Config{Name: "shop"})
	if err != nil || !isNew {
		t.Fatalf("created: %v, %v", isNew, err)
	}
	return c
}

func TestFirstCertificateIsMadeOnceAndIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	if _, err := f.Certificate(); !errors.Is(err, ErrNoCertificate) {
		t.Fatalf("got %v", err)
	}
	var made sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			// Each with a view of its own, as several programs have.
			other := &Folder{path: f.path}
			c, _, err := other.Create(Config{Name: "shop"})
			if err != nil {
				t.Error(err)
				return
			}
			made.Store(c.Fingerprint, true)
		})
	}
	all.Wait()
	count := 0
	made.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d certificates were made", count)
	}
	c, isNew, err := f.Create(Config{})
	if err != nil || isNew {
		t.Fatalf("again: %v, %v", isNew, err)
	}
	for path, want := range map[string]os.FileMode{f.Path(): 0o700, filepath.Join(f.Path(), "broker-0001.pem"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v)", path, info.Mode(), err)
		}
	}
	if left, _ := os.ReadDir(f.Path()); len(left) != 1 {
		t.Errorf("the folder holds %v", left)
	}
	now := time.Now()
	if c.Leaf.NotBefore.After(now.Add(-23*time.Hour)) || c.Leaf.NotAfter.Before(now.Add(Validity-time.Hour)) || c.Leaf.Subject.CommonName != "shop" {
		t.Errorf("valid from %s to %s for %s", c.Leaf.NotBefore, c.Leaf.NotAfter, c.Leaf.Subject)
	}
}

// Write access to the folder, or to one above it, would allow another key in the place of ours.
func TestFolderThatOthersMayChangeGetsNoKey(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(filepath.Join(open, "identity"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Create(Config{Name: "shop"}); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(f.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestKeyThatOthersMayReadIsRefused(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	create(t, f)
	path := filepath.Join(f.Path(), "broker-0001.pem")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Folder{path: f.path}).Certificate(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v", err)
	}
}

func TestRotationSignsTheNewKeyWithTheOld(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	last := create(t, f)
	for range ChainMax + 1 {
		next, err := f.Rotate(Config{Name: "shop"}, false)
		if err != nil {
			t.Fatal(err)
		}
		if next.Fingerprint == last.Fingerprint {
			t.Error("the key is the old one")
		}
		if err := next.Leaf.CheckSignatureFrom(last.Leaf); err != nil {
			t.Error(err)
		}
		if len(next.Chain) > ChainMax || string(next.Chain[1]) != string(last.Chain[0]) {
			t.Errorf("the chain has %d certificates", len(next.Chain))
		}
		in, err := f.Certificate()
		if err != nil || in.Fingerprint != next.Fingerprint || len(in.Chain) != len(next.Chain) {
			t.Errorf("in use is %v (%v), want %v", in.Fingerprint, err, next.Fingerprint)
		}
		last = next
	}
	list, err := f.List()
	if err != nil || len(list) != ChainMax+2 || list[0].Fingerprint != last.Fingerprint {
		t.Errorf("%d certificates, %v", len(list), err)
	}
}

func TestAnotherProgramNoticesARotation(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	create(t, f)
	daemon := &Folder{path: f.path}
	if _, err := daemon.Certificate(); err != nil {
		t.Fatal(err)
	}
	next, err := f.Rotate(Config{}, false)
	if err != nil {
		t.Fatal(err)
	}
	daemon.readAt = daemon.readAt.Add(-rereadAfter)
	if in, err := daemon.Certificate(); err != nil || in.Fingerprint != next.Fingerprint {
		t.Errorf("in use is %v (%v)", in, err)
	}
}

// A thief who has the old key could have signed one of its own with it too.
func TestCompromisedKeyVouchesForNothing(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	old := create(t, f)
	next, err := f.Rotate(Config{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(next.Chain) != 1 || next.Leaf.CheckSignatureFrom(old.Leaf) == nil {
		t.Error("the old key has signed the new one")
	}
}

func TestExpiredKeyIsNotUsedWhenThereIsAnother(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	ago := time.Now().Add(-2 * Validity)
	expired, err := New(Config{Now: ago})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.add(expired, 1); err != nil {
		t.Fatal(err)
	}
	if in, err := f.Certificate(); err != nil || in.Fingerprint != expired.Fingerprint || !errors.Is(Check(in.Leaf, time.Now()), ErrExpired) {
		t.Fatalf("in use is %v (%v)", in, err)
	}
	next, err := f.Rotate(Config{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(next.Chain) != 1 {
		t.Error("a key that has expired vouches for the new one")
	}
	if list, err := f.List(); err != nil || len(list) != 1 {
		t.Errorf("%d certificates are left (%v)", len(list), err)
	}
	// A new one that is not valid yet does not take the place of one that is.
	later, err := New(Config{Now: time.Now().Add(48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.add(later, 7); err != nil {
		t.Fatal(err)
	}
	if in, err := f.Certificate(); err != nil || in.Fingerprint != next.Fingerprint || !errors.Is(Check(later.Leaf, time.Now()), ErrNotYetValid) {
		t.Errorf("in use is %v (%v)", in, err)
	}
}

func TestRotationNeedsSomethingToRotate(t *testing.T) {
	t.Parallel()
	if _, err := newFolder(t).Rotate(Config{}, false); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("got %v", err)
	}
}

// authority writes the files of a certificate authority, and gives their names.
func authority(t *testing.T, folder string, serial int64) (certificate, key, ca string) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	names := [3]string{}
	for i, content := range [][]byte{
		pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}),
	} {
		names[i] = filepath.Join(folder, []string{"broker.crt", "broker.key", "ca.crt"}[i])
		if err := os.WriteFile(names[i], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return names[0], names[1], names[2]
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f, err := OpenFiles(authority(t, folder, 1))
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Certificate()
	if err != nil || f.Authorities() == nil {
		t.Fatal("no certificate, or no authority", err)
	}
	// Half of the new pair: the old one stays in use.
	key, err := os.ReadFile(filepath.Join(folder, "broker.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority(t, folder, 2)
	newKey, err := os.ReadFile(filepath.Join(folder, "broker.key"))
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	for i, text := range [][]byte{key, newKey} {
		if err := os.WriteFile(filepath.Join(folder, "broker.key"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(folder, "broker.key"), later, later.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		now, err := f.Certificate()
		if err != nil || (now.Fingerprint == first.Fingerprint) != (i == 0) {
			t.Errorf("step %d: in use is %v (%v), first was %v", i, now.Fingerprint, err, first.Fingerprint)
		}
	}
}

func TestFilesThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certificate, key, ca := authority(t, folder, 1)
	_, otherKey, _ := authority(t, t.TempDir(), 2)
	nothing := filepath.Join(folder, "nothing")
	if err := os.WriteFile(nothing, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(folder, "open.key")
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ certificate, key, ca, want string }{
		{certificate, otherKey, ca, "the key is not that of the certificate"},
		{certificate, nothing, ca, "there is no private key"},
		{nothing, key, ca, "there is no certificate"},
		{certificate, key, nothing, "there is no certificate in PEM"},
		{certificate, open, ca, "others may read it"},
		{certificate, filepath.Join(folder, "missing"), ca, "no such file"},
	} {
		if _, err := OpenFiles(test.certificate, test.key, test.ca); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %s: got %v, want %q", test.certificate, test.key, err, test.want)
		}
	}
}

func TestFingerprintsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("0f", 32)
	for _, text := range []string{want, strings.ToUpper(want), "SHA256:" + want, " " + strings.TrimSuffix(strings.Repeat("0f:", 32), ":") + "\n"} {
		if f, err := ParseFingerprint(text); err != nil || f.String() != want {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "0f", want + "0f", want[1:] + "g", "MD5:" + want} {
		if f, err := ParseFingerprint(text); err == nil {
			t.Errorf("%q is read as %v", text, f)
		}
	}
}

func TestWordsOfDifferentBytesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for n := range 1 << 16 {
		word := Words([]byte{byte(n >> 8), byte(n)})
		if len(word) != 5 || seen[word] {
			t.Fatalf("%04x is %q", n, word)
		}
		seen[word] = true
	}
	if got := Words([]byte{0, 0, 0xff, 0xff, 1}); got != "babab-zuzuz" {
		t.Errorf("got %q", got)
	}
}

func FuzzParseFingerprint(f *testing.F) {
	f.Add("SHA256:" + strings.Repeat("0f:", 31) + "0f")
	f.Add(strings.Repeat("a", 64))
	f.Add("sha256:")
	f.Fuzz(func(t *testing.T, text string) {
		fingerprint, err := ParseFingerprint(text)
		if err != nil {
			return
		}
		if again, err := ParseFingerprint(fingerprint.String()); err != nil || again != fingerprint {
			t.Errorf("%q: %v is read back as %v, %v", text, fingerprint, again, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	c, err := New(Config{Name: "seed"})
	if err != nil {
		f.Fatal(err)
	}
	text, err := c.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := decode(text, text)
		if err == nil && (c.Leaf == nil || c.key == nil || c.Fingerprint != FingerprintOf(c.Leaf)) {
			t.Errorf("half a certificate: %+v", c)
		}
	})
}
