package console_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/parleytest"
)

// keepPictures replaces the pictures of the README; CONTRIBUTING.md has the command.
var keepPictures = flag.Bool("pictures", false, "write the pictures of the console to docs/pictures, in light and in dark")

// The pictures of the README show the page of a queue while messages go through it.
func TestPicturesOfTheREADMEAreMadeOfAQueueAtWork(t *testing.T) {
	if !*keepPictures {
		t.Skip("it runs with -pictures")
	}
	pool := parleytest.Database(t)
	exec(t, pool, "select parley.create_queue('orders', kind => 'SIMPLE'), parley.create_queue('invoices', kind => 'SIMPLE')")
	for n := range 40 {
		exec(t, pool, "select parley.put('orders', jsonb_build_object('number', 4700 + $1::integer, 'customer', 'cleo'), key => 'cleo')", n)
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			_, _ = pool.Exec(context.Background(), "select parley.put('orders', jsonb_build_object('number', 4740 + $1::integer), key => 'k' || $1 % 7)", n)
			if n%60 > 20 {
				_, _ = pool.Exec(context.Background(), "select parley.take('orders', 2)")
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	base := serve(t, console.Config{Targets: []console.Target{target(t, pool, "")}, Key: "opensesame"})
	ctx := browse(t)
	run(ctx, t, "log in", chromedp.Navigate(base+"/login?key=opensesame"))
	for _, colours := range []string{"light", "dark"} {
		dress(ctx, t, 1280, colours)
		run(ctx, t, "watch the queue", chromedp.Navigate(base+"/queues/orders"), chromedp.WaitVisible("#chart .uplot"),
			chromedp.Sleep(25*time.Second),
			chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				taken, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "png"})
				if err != nil {
					return err
				}
				return os.WriteFile(filepath.Join("..", "..", "docs", "pictures", "console-"+colours+".png"), taken.Data, 0o600)
			}))
	}
}
