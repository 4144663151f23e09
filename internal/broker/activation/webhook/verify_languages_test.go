package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// receiver is a language in which the documentation shows how to check a signature. Its program calls what is shown there
// with each request of the file that is its argument, and prints true or false for each.
type receiver struct{ language, command, file, before, after string }

var receivers = []receiver{
	{"python", "python3", "verify.py", "", `
import json, sys
for r in json.load(open(sys.argv[1])):
    print("true" if verify(r["secret"], r["headers"], base64.b64decode(r["body"]), r["now"]) else "false")
`},
	{"js", "node", "verify.cjs", "", `
for (const r of JSON.parse(require("node:fs").readFileSync(process.argv[2])))
  console.log(verify(r.secret, r.headers, Buffer.from(r.body, "base64"), r.now));
`},
	{"php", "php", "verify.php", "<?php\n", `
foreach (json_decode(file_get_contents($argv[1]), true) as $r) {
    echo verify($r['secret'], $r['headers'], base64_decode($r['body']), $r['now']) ? "true\n" : "false\n";
}
`},
}

type signedRequest struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Now     int64             `json:"now"`
}

// The code that the documentation shows in each language takes a request that was signed here, and no other.
func TestReceiversInEachLanguageDistinguishSignedRequests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guides", "activation.md"))
	if err != nil {
		t.Fatal(err)
	}
	requests, names := signedAndForged(t)
	text, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range receivers {
		t.Run(r.language, func(t *testing.T) {
			t.Parallel()
			command, err := exec.LookPath(r.command)
			if err != nil && os.Getenv("PARLEY_TEST_REQUIRE_LANGUAGES") != "" {
				t.Fatalf("%s is not installed, and PARLEY_TEST_REQUIRE_LANGUAGES asks for it", r.command)
			}
			if err != nil {
				t.Skipf("%s is not installed", r.command)
			}
			_, shown, found := strings.Cut(string(page), "```"+r.language+"\n")
			shown, _, closed := strings.Cut(shown, "```\n")
			if !found || !closed {
				t.Fatalf("docs/guides/activation.md shows nothing in %s", r.language)
			}
			folder := t.TempDir()
			program, input := filepath.Join(folder, r.file), filepath.Join(folder, "requests.json")
			for name, content := range map[string]string{program: r.before + shown + r.after, input: string(text)} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), command, program, input).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			answers := strings.Fields(string(out))
			if len(answers) != len(names) {
				t.Fatalf("%d answers to %d requests: %s", len(answers), len(names), out)
			}
			for i, name := range names {
				if want := strconv.FormatBool(i == 0); answers[i] != want {
					t.Errorf("%s: %s, not %s", name, answers[i], want)
				}
			}
		})
	}
}

// signedAndForged gives a request that the daemon made, first, and others that it did not make.
func signedAndForged(t *testing.T) (requests []signedRequest, names []string) {
	t.Helper()
	b := newFixture(t, "", accept)
	b.dialog("x")
	b.run(1)
	seen, now := b.seen()[0], time.Now().Unix()
	if !verify(fixtureSecret, seen.header, seen.body, time.Now()) {
		t.Fatal("the request is not signed")
	}
	add := func(name, secret, header, value, before string, at int64) {
		headers := map[string]string{}
		for key := range seen.header {
			headers[strings.ToLower(key)] = seen.header.Get(key)
		}
		if header != "" {
			headers[strings.ToLower(http.CanonicalHeaderKey(header))] = value
		}
		body := base64.StdEncoding.EncodeToString(append([]byte(before), seen.body...))
		requests, names = append(requests, signedRequest{secret, headers, body, at}), append(names, name)
	}
	add("the request as it was made", fixtureSecret, "", "", "", now)
	add("another body", fixtureSecret, "", "", " ", now)
	add("another secret", "whsec_YW5vdGhlciBrZXkgb2Ygc2l4dGVlbiBieXRlcw==", "", "", "", now)
	add("another id", fixtureSecret, "Webhook-Id", "x", "", now)
	add("another time", fixtureSecret, "Webhook-Timestamp", strconv.FormatInt(now-60, 10), "", now)
	add("no time", fixtureSecret, "Webhook-Timestamp", "", "", now)
	add("a time that is none", fixtureSecret, "Webhook-Timestamp", "now", "", now)
	add("another signature", fixtureSecret, "Webhook-Signature", "v1,AAAA", "", now)
	add("no signature", fixtureSecret, "Webhook-Signature", "", "", now)
	add("an old request", fixtureSecret, "", "", "", now+3600)
	return requests, names
}
