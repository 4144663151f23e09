package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// requireVariable makes a missing chromium a failure, for CI.
const requireVariable = "PARLEY_TEST_REQUIRE_CHROMIUM"

// browser is a headless chromium that is spoken to through a pipe, in the protocol of its developer tools.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	calls   int
	session string
	// requested are the addresses that the page asked for; loaded is set when it is complete; complained is what it
	// wrote to the console.
	requested  []string
	loaded     bool
	complained []string
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// startBrowser opens an empty page. Where chromium is not installed the test is skipped, or fails if that is asked for.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		if os.Getenv(requireVariable) != "" {
			t.Fatalf("chromium is not installed and %s is set", requireVariable)
		}
		t.Skip("chromium is not installed")
	}
	commands, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not by t.Context, which would kill it and leave its children writing into the folder that is to be removed.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4, where chromium expects them
	var noise bytes.Buffer                         // they all hold its other end, so Wait returns when the last of them has ended
	cmd.Stderr = &noise
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = commands.Close(), answers.Close()
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			t.Logf("chromium: %v\n%s", err, &noise)
		}
		_ = out.Close()
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Network", "Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call asks for something and waits for the answer. Events that come before it are recorded.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.calls++
	request := map[string]any{"id": b.calls, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.next()
		if m.ID != b.calls {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("chromium: %s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// next reads one message and records it.
func (b *browser) next() (m message) {
	b.t.Helper()
	text, err := b.out.ReadBytes(0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			b.t.Fatal("chromium has ended")
		}
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Network.requestWillBeSent":
		var event struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if err := json.Unmarshal(m.Params, &event); err != nil {
			b.t.Fatal(err)
		}
		b.requested = append(b.requested, event.Request.URL)
	case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		b.complained = append(b.complained, string(m.Params))
	case "Page.loadEventFired":
		b.loaded = true
	}
	return m
}

// open shows a page and waits until it is complete.
func (b *browser) open(url string) {
	b.t.Helper()
	b.loaded, b.requested, b.complained = false, nil, nil
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	for !b.loaded {
		b.next()
	}
}

// evaluate gives the value of an expression in the page.
func (b *browser) evaluate(expression string, value any) {
	b.t.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		b.t.Fatalf("%s: %v in %s", expression, err, answer.Result.Value)
	}
}

// dress sets the width of the window and the colours that the user prefers, light or dark.
func (b *browser) dress(width int, colours string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": colours}},
	}, nil)
}

// picture writes a picture of the whole page to a file, for a person to inspect.
func (b *browser) picture(path string) {
	b.t.Helper()
	var shot struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	image, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
