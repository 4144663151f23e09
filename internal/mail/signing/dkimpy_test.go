package signing_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/signing"
)

// dkimpy is another implementation of DKIM, in Python: what it says of our signatures does not depend on the library that made them. It is
// fetched from its registry, so that this runs where PARLEY_TEST_EXAMPLES has python or all.
func TestDkimpyVerifiesOurSignatures(t *testing.T) {
	t.Parallel()
	if asked := strings.Fields(os.Getenv("PARLEY_TEST_EXAMPLES")); !slices.Contains(asked, "python") && !slices.Contains(asked, "all") {
		t.Skip("PARLEY_TEST_EXAMPLES does not ask for python")
	}
	folder := t.TempDir()
	python := filepath.Join(folder, "venv", "bin", "python")
	run := func(name string, arguments ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, arguments, err, out)
		}
		return string(out)
	}
	run("python3", "-m", "venv", filepath.Join(folder, "venv"))
	run(python, "-m", "pip", "install", "--quiet", "dkimpy==1.1.8", "pynacl==1.5.0")
	made, zone := keys(t)
	records := make(map[string]string)
	for _, key := range made {
		name := key.Selector + "._domainkey." + key.Domain
		record, err := zone(name)
		if err != nil {
			t.Fatal(err)
		}
		records[name] = record[0]
	}
	known, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	zoneFile, messageFile := filepath.Join(folder, "zone.json"), filepath.Join(folder, "message.eml")
	if err := os.WriteFile(zoneFile, known, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":        letter,
		"folded":       "From: \"A\"\r\n\t<a@a.example>\r\nTo: b@b.example,\r\n  c@b.example\r\nSubject:  two\t blanks  \r\n\r\nbody  \twith \t blanks \r\n",
		"no body":      "From: a@a.example\r\nSubject: none\r\n\r\n",
		"dots":         "From: a@a.example\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n.\r\n..\r\nGrüße\r\n",
		"without end":  "From: a@a.example\r\nSubject: x\r\n\r\nno line end",
		"several Tos":  "From: a@a.example\r\nTo: b@b.example\r\nReferences: <1@a>\r\n <2@a>\r\nList-Unsubscribe: <https://a.example/>\r\n\r\nx\r\n",
		"upper fields": "FROM: a@a.example\r\nSUBJECT: x\r\nMESSAGE-ID: <1@a.example>\r\n\r\nx\r\n",
	} {
		fields, err := signing.Headers(made, namesOf(text), open(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range []struct{ change, text, want string }{
			{"as it was signed", text, "True"},
			{"with another author", "From: mallory@c.example\r\n" + text, "False"},
		} {
			if err := os.WriteFile(messageFile, append(slices.Clone(fields), c.text...), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(run(python, "testdata/verify.py", messageFile, zoneFile))
			if want := []string{"a.example", "rsa", c.want, "a.example", "ed25519", c.want}; !slices.Equal(got, want) {
				t.Errorf("%s %s: dkimpy finds %q", name, c.change, got)
			}
		}
	}
}
