package pages

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	netsmtp "net/smtp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/server"
	"github.com/parley-broker/parley/parleytest"
)

// sending is the call of Python that sends a letter.
var sending = regexp.MustCompile(`hub\.sendmail\('([^']+)', \[([^]]+)\],\s*'([^']+)'\)`)

// pageAddress is where the receive connector of a page listens.
const pageAddress = "127.0.0.1:2525"

// The message that the page about services and tables sends arrives in both, when the page is pasted from top to bottom.
func TestMailOfThePageAboutServicesArrives(t *testing.T) {
	t.Parallel()
	const page = "docs/mail/services.md"
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	pool := parleytest.Database(t)
	s := newSession(t, pool)
	letters := 0
	for _, b := range readBlocks(strings.ReplaceAll(string(text), pageAddress, address)) {
		if b.letter == "" {
			what := fmt.Sprintf("%s:%d shows what the page shows", page, b.line)
			parleytest.Until(t, what, func() bool { return essential(s.run(b)) == essential(b.output) || b.output == "" })
			continue
		}
		if letters++; letters == 1 {
			serveMail(t, server.Config{
				Pool: pool, SpoolFolder: t.TempDir(), NameServers: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler),
			})
		}
		call := sending.FindStringSubmatch(b.letter)
		recipients := strings.Split(strings.ReplaceAll(call[2], "'", ""), ", ")
		message := strings.ReplaceAll(call[3], `\n`, "\r\n")
		parleytest.Until(t, "the listener", func() bool { return netsmtp.SendMail(address, nil, call[1], recipients, []byte(message)) == nil })
	}
	if letters == 0 {
		t.Fatal("the page sends no letter")
	}
}

// serveMail runs a daemon of mail to the end of the test.
func serveMail(t *testing.T, config server.Config) {
	t.Helper()
	daemon, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	if err := daemon.Prepare(ctx); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the daemon: %v", err)
		}
	})
}
