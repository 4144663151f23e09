package console_test

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/parleytest"
)

// browse opens a headless chromium. Where it is not installed the test is skipped, or fails if that is asked for.
func browse(t *testing.T) context.Context {
	t.Helper()
	if _, err := osexec.LookPath("chromium"); err != nil {
		if os.Getenv("PARLEY_TEST_REQUIRE_CHROMIUM") != "" {
			t.Fatal("chromium is not installed and PARLEY_TEST_REQUIRE_CHROMIUM is set")
		}
		t.Skip("chromium is not installed")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(2*time.Minute), chromedp.UserDataDir(t.TempDir()))
	allocated, cancelAllocated := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancelAllocated)
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	run(ctx, t, "start the browser", chromedp.Navigate("about:blank")) // a time limit of the first step would end the browser
	ctx, cancelLimit := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancelLimit)
	return ctx
}

func run(ctx context.Context, t *testing.T, what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// evaluate gives the value of an expression in the page.
func evaluate[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%.100s: %v", expression, err)
	}
	return value
}

// dress sets the width of the window and the colours that its user prefers, light or dark.
func dress(ctx context.Context, t *testing.T, width int64, colours string) {
	t.Helper()
	run(ctx, t, "dress the window", chromedp.EmulateViewport(width, 900),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
			})
			return err
		}))
}

// axe gives the script of axe-core, which npm brings once.
func axe(t *testing.T) string {
	t.Helper()
	const version = "4.14.1"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "parley-axe-core-"+version)
	script := filepath.Join(folder, "node_modules", "axe-core", "axe.min.js")
	if text, err := os.ReadFile(script); err == nil {
		return string(text)
	}
	if _, err := osexec.LookPath("npm"); err != nil {
		if os.Getenv("PARLEY_TEST_REQUIRE_LANGUAGES") != "" {
			t.Fatal("npm is not installed and PARLEY_TEST_REQUIRE_LANGUAGES is set")
		}
		t.Skip("npm is not installed")
	}
	command := osexec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts",
		"--prefix", folder, "axe-core@"+version)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v\n%s", err, out)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wideElements names what is wider than the window and does not scroll by itself.
const wideElements = `[...document.querySelectorAll("body *")].filter(e => {
	if (e.closest(".scroll, pre, .hidden, .skip, .u-legend")) return false;
	return e.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(e => e.tagName + "." + e.className).slice(0, 5).join(" ")`

// axeViolations asks axe what in the page keeps people out.
const axeViolations = `axe.run().then(r => JSON.stringify(r.violations.map(
	v => ({id: v.id, nodes: v.nodes.map(n => n.html + " " + n.failureSummary)}))))`

func TestPagesFitAPhoneAndADesktopInLightAndDarkAndAreAccessible(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	handle := shop(t, pool)
	number := setAside(t, pool)
	exec(t, pool, "select parley.alter_queue('orders', status => false)")
	exec(t, pool, "select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 day') from generate_series(1, 101)") // a page and more
	base := serve(t, console.Config{Targets: []console.Target{target(t, pool, "")}, Key: "opensesame"})
	script := axe(t)
	ctx := browse(t)
	run(ctx, t, "open the console", chromedp.Navigate(base+"/login?key=opensesame"), chromedp.WaitVisible("nav"))
	paths := []string{
		"/", "/queues", "/queues/orders", "/queues/jobs", "/conversations/" + handle, "/delayed", "/diagnosis", "/mail", "/flow",
		"/failed/messages/jobs/" + number + "/edit",
	}
	for _, width := range []int64{375, 1280} {
		for _, colours := range []string{"light", "dark"} {
			dress(ctx, t, width, colours)
			for _, path := range paths {
				run(ctx, t, path, chromedp.Navigate(base+path), chromedp.WaitReady("#content"))
				if wide := evaluate[string](ctx, t, wideElements); wide != "" {
					t.Errorf("%s at %d pixels: %s is wider than the window", path, width, wide)
				}
				if width == 375 && colours == "light" || path == "/" || path == "/queues/orders" {
					evaluate[int](ctx, t, script+";0")
					if violations := evaluate[string](ctx, t, axeViolations); violations != "[]" {
						t.Errorf("%s at %d pixels, %s: %s", path, width, colours, violations)
					}
				}
			}
		}
	}
}

func TestPageRefreshesItselfUntilItIsStoppedAndKeepsWhatItsUserDoes(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	base := serve(t, console.Config{Targets: []console.Target{target(t, pool, "")}, Key: "opensesame"})
	ctx := browse(t)
	run(ctx, t, "open the queue", chromedp.Navigate(base+"/login?key=opensesame"), chromedp.Navigate(base+"/queues/jobs"),
		chromedp.WaitVisible("#chart .uplot"))
	messages := func() int { return evaluate[int](ctx, t, `document.querySelectorAll(".messages li").length`) }
	exec(t, pool, "select parley.put('jobs', 'second'::text)")
	parleytest.Until(t, "the page shows the second message", func() bool { return messages() == 2 })
	// An open message is read: the page does not change under it.
	run(ctx, t, "open a message", chromedp.Click(".messages summary"))
	exec(t, pool, "select parley.put('jobs', 'third'::text)")
	run(ctx, t, "wait", chromedp.Sleep(5*time.Second))
	if n := messages(); n != 2 {
		t.Errorf("the page changed to %d messages while one was read", n)
	}
	run(ctx, t, "close the message", chromedp.Click(".messages summary"))
	parleytest.Until(t, "the page shows the third message", func() bool { return messages() == 3 })
	// By keyboard alone: the button that stops it, and then the link of a queue.
	run(ctx, t, "stop it", chromedp.Focus("#live"), chromedp.KeyEvent(kb.Enter))
	exec(t, pool, "select parley.put('jobs', 'fourth'::text)")
	run(ctx, t, "wait", chromedp.Sleep(5*time.Second))
	if n := messages(); n != 3 {
		t.Errorf("a page that was stopped changed to %d messages", n)
	}
	run(ctx, t, "go to the queues by keyboard", chromedp.Focus(`nav a[href="/queues"]`), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(`table a[href="/queues/jobs"]`))
	for _, one := range evaluate[[]string](ctx, t, `performance.getEntriesByType("resource").map(e => e.name)`) {
		if !strings.HasPrefix(one, base) {
			t.Errorf("the page loaded %s from elsewhere", one)
		}
	}
}
