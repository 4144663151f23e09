package peers_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// variable names the languages whose programs fetch packages from their registries, "all" for every one.
const variable = "PARLEY_TEST_EXAMPLES"

// fetches skips a test that fetches packages unless somebody asks for it.
func fetches(t *testing.T, language string, tools ...string) {
	t.Helper()
	asked := strings.Fields(os.Getenv(variable))
	if !slices.Contains(asked, language) && !slices.Contains(asked, "all") {
		t.Skipf("%s does not ask for %s", variable, language)
	}
	for _, tool := range tools {
		mailtest.Program(t, tool, variable)
	}
}

// in runs a command in a folder to its end.
func in(t *testing.T, folder, name string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// attachment gives the text of a message, and the name and the content of its attachment.
func attachment(t *testing.T, message string) (text, name string, content []byte) {
	t.Helper()
	read, err := mail.ReadMessage(strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(header textproto.MIMEHeader, body io.Reader)
	walk = func(header textproto.MIMEHeader, body io.Reader) {
		kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
		if err != nil {
			t.Fatalf("%v: %v", header, err)
		}
		if strings.HasPrefix(kind, "multipart/") {
			parts := multipart.NewReader(body, parameters["boundary"])
			for part, err := parts.NextRawPart(); !errors.Is(err, io.EOF); part, err = parts.NextRawPart() {
				if err != nil {
					t.Fatal(err)
				}
				walk(part.Header, part)
			}
			return
		}
		switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		decoded, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		switch kind {
		case "text/plain":
			text = strings.ReplaceAll(string(decoded), "\r\n", "\n")
		case "application/octet-stream":
			_, disposition, _ := mime.ParseMediaType(header.Get("Content-Disposition"))
			name, _ = new(mime.WordDecoder).DecodeHeader(disposition["filename"])
			content = decoded
		}
	}
	walk(textproto.MIMEHeader(read.Header), read.Body)
	return text, name, content
}

// submits has a client submit its three messages: one with an attachment, one to a name that is not ASCII, and one that asks for a report.
func submits(t *testing.T, submit func(host, port string)) {
	t.Helper()
	h := newHub(t, nil, map[string]map[string]object{"mailbox": {"jürgen@example.org": {"store": "local"}}})
	host, port, err := net.SplitHostPort(h.submission)
	if err != nil {
		t.Fatal(err)
	}
	submit(host, port)
	got := h.awaitMessage("bob", "Subject: attachment")
	text, name, content := attachment(t, got)
	sum := sha256.Sum256(content)
	if text != "Grüße\n..\n.\n" || name != "größe.bin" || !strings.Contains(got, "X-Sum: "+hex.EncodeToString(sum[:])) {
		t.Errorf("the text is %q, the attachment %q with %d bytes of %x; the message begins %.1500q", text, name, len(content), sum, got)
	}
	h.awaitMessage("jürgen", "Return-Path: <ann@example.org>")
	h.awaitMessage("ann", "Return-Path: <>", "Original-Envelope-Id: order+7", "Final-Recipient: rfc822; bob@example.org", "Action: delivered")
	h.awaitEmpty()
}

func TestPythonSubmits(t *testing.T) {
	t.Parallel()
	python := mailtest.Program(t, "python3", "PARLEY_TEST_REQUIRE_LANGUAGES")
	submits(t, func(host, port string) { in(t, ".", python, "testdata/submit.py", host, port) })
}

func TestNodemailerSubmits(t *testing.T) {
	t.Parallel()
	fetches(t, "node", "node", "npm")
	folder := t.TempDir()
	in(t, ".", "cp", "testdata/submit.mjs", folder)
	in(t, folder, "npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "nodemailer@10.6.0")
	submits(t, func(host, port string) { in(t, folder, "node", "submit.mjs", host, port) })
}

func TestJakartaMailSubmits(t *testing.T) {
	t.Parallel()
	fetches(t, "java", "java", "javac", "mvn")
	folder := t.TempDir()
	in(t, ".", "cp", "-r", "testdata/java/.", folder)
	in(t, folder, "mvn", "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies")
	classes := filepath.Join("target", "classes") + ":" + filepath.Join("target", "dependency", "*")
	submits(t, func(host, port string) { in(t, folder, "java", "-cp", classes, "Submit", host, port) })
}
