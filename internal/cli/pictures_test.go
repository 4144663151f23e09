package cli

import (
	"context"
	"flag"
	"image"
	_ "image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/verbs/top"
	"github.com/parley-broker/parley/internal/measure/demo"
	measureverbs "github.com/parley-broker/parley/internal/measure/verbs"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
)

// keepPictures replaces the pictures of the tutorial; CONTRIBUTING.md has the command.
var keepPictures = flag.Bool("pictures", false, "write the pictures of the tutorial to docs/pictures, of a demo of full length")

const pictureBytesMax = 150_000

// underWay observes a demo, and reports when its second phase has begun.
type underWay struct {
	begun chan struct{}
	once  sync.Once
}

func (*underWay) Notice(string) {}

func (u *underWay) Progress(p demo.Progress) {
	if p.Phase > 0 {
		u.once.Do(func() { close(u.begun) })
	}
}

// screensOf gives the first two screens of parley top over a database, once two readings have given the rates.
func screensOf(t *testing.T, dsn string, columns int) []string {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var model tea.Model = top.New(t.Context(), pool, time.Second)
	cmd := model.Init()
	for range 3 { // a reading, the wait for the next one, and that
		model, cmd = model.Update(cmd())
	}
	view := func(key string, height int) string {
		model, _ = model.Update(tea.WindowSizeMsg{Width: columns, Height: height})
		model, _ = model.Update(tea.KeyPressMsg{Code: rune(key[0]), Text: key})
		return model.View().Content
	}
	return []string{view("1", 8), view("2", 14)}
}

// shoot writes a picture of the upper part of a page.
func shoot(t *testing.T, page, picture string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("PARLEY_TEST_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skip("chromium is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--hide-scrollbars", "--user-data-dir="+t.TempDir(), "--window-size=900,860", "--screenshot="+picture,
		(&url.URL{Scheme: "file", Path: page}).String()).CombinedOutput()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, output)
	}
}

// The pictures of the tutorial are of a demo that runs: the screens of parley top in the midst of it, and its result page.
func TestPicturesOfTheREADMEAreMadeFromADemo(t *testing.T) {
	t.Parallel()
	folder, duration := t.TempDir(), 4*time.Second
	if *keepPictures {
		folder, duration = filepath.Join("..", "..", "docs", "pictures"), 20*time.Second
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	server := postgrestest.Start(t, postgres.Config{})
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	watched := &underWay{begun: make(chan struct{})}
	config := demo.Config{
		Senders: 16, Conversations: 64, Readers: min(16, 2*runtime.NumCPU()), Duration: duration, Database: "parley_demo", Observer: watched,
	}
	var result demo.Result
	ended := make(chan error, 1)
	go func() {
		var err error
		result, err = demo.Run(t.Context(), conn, config)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("the demo has ended before it was watched: %v", err)
	case <-watched.begun:
	}
	const columns = 104
	screens := screensOf(t, server.DSN(config.Database), columns)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !result.Passed {
		t.Fatal(result.Verdict())
	}

	picture, err := screenPicture("parley top, while the demo runs: the queues, and the conversations at their heads", columns, screens...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MySSBLabTestQueue", "READERS", "CONVERSATION", "[2 conversations]"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture of parley top does not show %q:\n%s", want, picture)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "top.svg"), []byte(picture), 0o600); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if _, err := measureverbs.WriteDemoPage(page, result.WritePage); err != nil {
		t.Fatal(err)
	}
	shot := filepath.Join(folder, "result.png")
	shoot(t, page, shot)
	checkShot(t, shot)
}

// checkShot holds a picture to be small, and to be of something.
func checkShot(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > pictureBytesMax {
		t.Errorf("the picture has %d bytes, want at most %d", info.Size(), pictureBytesMax)
	}
	shown, _, err := image.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	colours := map[[3]uint32]bool{}
	for y := range shown.Bounds().Dy() {
		for x := range shown.Bounds().Dx() {
			r, g, b, _ := shown.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}] = true
		}
	}
	if len(colours) < 20 {
		t.Errorf("the picture has %d colours", len(colours))
	}
}
