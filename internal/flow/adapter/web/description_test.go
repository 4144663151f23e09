package web_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
	"github.com/parley-broker/parley/parleytest"
)

// described are locations of one listener, by their paths, with the definitions that their host gives.
type described struct {
	*testing.T

	kind    adapter.Kind
	address string
}

// open opens a location with a message type whose schema is text, under a name of its own.
func (d *described) open(name, path, settings, text string) {
	d.Helper()
	e, _ := endpoint(d.T, "http://"+d.address+path, settings)
	e.Name = name
	e.Describe = func(messageType string) (json.RawMessage, error) {
		if text == "" {
			return nil, errors.New("the database of secrets is away")
		}
		return json.Marshal(map[string]any{
			"receive port": map[string]any{"In": map[string]any{"application": "Shop", "description": "of <b>all</b> articles", "responds": true}},
			"receive location": map[string]any{name: map[string]any{
				"receive_port": "In", "adapter": "HTTP", "address": e.Address, "enabled": true, "settings": json.RawMessage(settings),
				"secrets": map[string]any{"token": "env:TOKEN"},
			}},
			"message type": map[string]any{messageType: map[string]any{"format": "json", "schema": map[string]any{
				"file": "order.json", "documents": map[string]any{"order.json": text},
			}}},
		})
	}
	receiver, err := d.kind.NewReceiver(e)
	if err != nil {
		d.Fatal(err)
	}
	in := &adaptertest.Intake{}
	var running sync.WaitGroup
	d.Cleanup(running.Wait)
	running.Go(func() { _ = receiver.Run(d.Context(), in) })
	parleytest.Until(d.T, "the location listens", func() bool {
		status, _, _ := d.get(path)
		return status == http.StatusMethodNotAllowed
	})
}

func (d *described) get(path string, headers ...string) (status int, header http.Header, body string) {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, "http://"+d.address+path, http.NoBody)
	if err != nil {
		d.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// paths gives those of a document.
func (d *described) paths(text string) string {
	d.Helper()
	var document struct {
		Paths map[string]any
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		d.Fatalf("%v in %s", err, text)
	}
	return strings.Join(slices.Sorted(maps.Keys(document.Paths)), " ")
}

const anArticle, aNumber = `{"type": "object", "properties": {"article": {"type": "string"}}}`, `{"type": "integer"}`

func TestAListenerDescribesItselfToThoseWhoMaySee(t *testing.T) {
	t.Parallel()
	d := &described{t, web.New(), free(t)}
	d.open("Hidden", "/hidden", `{"authentication": "none"}`, anArticle)
	if status, _, _ := d.get("/openapi.json"); status != http.StatusNotFound {
		t.Errorf("a listener that describes nothing answers %d", status)
	}
	d.open("Callers only", "/callers", `{"authentication": "bearer", "openapi": "callers", "message_type": "b"}`, aNumber)
	status, header, _ := d.get("/openapi.json")
	if status != http.StatusUnauthorized || header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a token it answers %d and %v", status, header)
	}
	d.open("Open to all", "/open", `{"authentication": "none", "openapi": "everyone", "message_type": "a"}`, anArticle)
	status, header, text := d.get("/openapi.json")
	if got := d.paths(text); status != http.StatusOK || got != "/open" || header.Get("Content-Type") != "application/json" {
		t.Errorf("everyone is shown %d, %q", status, got)
	}
	if _, _, text := d.get("/openapi.json", "Authorization", "Bearer wrong"); d.paths(text) != "/open" {
		t.Errorf("with a wrong token it shows %q", d.paths(text))
	}
	_, _, text = d.get("/openapi.json", "Authorization", "Bearer "+keys["token"])
	if got := d.paths(text); got != "/callers /open" {
		t.Errorf("a caller is shown %q", got)
	}
	var document struct {
		Servers    []struct{ URL string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Servers) != 1 || document.Servers[0].URL != "/" ||
		len(document.Components.Schemas) != 2 {
		t.Errorf("the servers are %v, the schemas %v, %v", document.Servers, document.Components.Schemas, err)
	}
	if strings.Contains(text, "TOKEN") || strings.Contains(text, d.address) {
		t.Errorf("it shows more than it should:\n%s", text)
	}
	checkPage(t, d)
	checkWithRedocly(t, text)
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.address+"/openapi.json", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s answers %d", method, answer.StatusCode)
		}
	}
	d.open("Broken", "/broken", `{"authentication": "none", "openapi": "everyone"}`, "")
	if status, _, text := d.get("/openapi.json"); status != http.StatusServiceUnavailable || strings.Contains(text, "secrets") {
		t.Errorf("without definitions it answers %d %s", status, text)
	}
}

func checkPage(t *testing.T, d *described) {
	t.Helper()
	status, header, page := d.get("/openapi.html")
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page answers %d, %v", status, header)
	}
	for _, part := range []string{"POST /open", "of &lt;b&gt;all&lt;/b&gt; articles", "Open to everybody", "504 Gateway Timeout", "&#34;article&#34;"} {
		if !strings.Contains(page, part) {
			t.Errorf("there is no %q in\n%s", part, page)
		}
	}
	for _, part := range []string{"/callers", "<script", "http://", "https://", "src=", "@import"} {
		if strings.Contains(page, part) {
			t.Errorf("there is %q in\n%s", part, page)
		}
	}
}

// checkWithRedocly holds a document against the rules of Redocly, where PARLEY_TEST_REDOCLY is its command.
func checkWithRedocly(t *testing.T, document string) {
	t.Helper()
	command := os.Getenv("PARLEY_TEST_REDOCLY")
	if command == "" {
		return
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "api.json"), []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	lint := exec.CommandContext(t.Context(), command, "lint", "--extends", "spec", "api.json")
	lint.Dir = folder
	lint.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if said, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, said)
	}
}

func TestALocationMayHaveThePathOfTheDescription(t *testing.T) {
	t.Parallel()
	d := &described{t, web.New(), free(t)}
	d.open("Own", "/openapi.json", `{"authentication": "none", "openapi": "everyone"}`, anArticle)
	if status, _, _ := d.get("/openapi.json"); status != http.StatusMethodNotAllowed {
		t.Errorf("the location answers %d", status)
	}
	if status, _, page := d.get("/openapi.html"); status != http.StatusOK || !strings.Contains(page, "POST /openapi.json") {
		t.Errorf("the page answers %d\n%s", status, page)
	}
}
