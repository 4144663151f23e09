package send_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/send"
)

func TestBodyArrivesAsItWas(t *testing.T) {
	t.Parallel()
	h := &host{extensions: []string{"PIPELINING", "8BITMIME"}}
	connection, err := open(t, h, func(target *send.Target) {
		target.Timeouts = send.Timeouts{Command: 5 * time.Second, Data: 5 * time.Second}
	})
	if err != nil {
		t.Fatal(err)
	}
	// Not by rapid: a body that arrives otherwise leaves the two ends waiting for each other, and each attempt to make it smaller waits anew.
	const letters = ".ab"
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		lines := make([]string, random.IntN(8))
		for i := range lines {
			for range random.IntN(5) {
				lines[i] += string(letters[random.IntN(len(letters))])
			}
		}
		body := strings.Join(lines, "\r\n") + "\r\n"
		message := letter(body, "a@b.example")
		message.Open = func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(mailtest.InPieces(body, 1+random.IntN(5))), nil
		}
		if got := outcome(connection.Send(t.Context(), message)); got != "delivered 2.0.0" {
			t.Fatalf("body %d, %q: result is %s", seed, body, got)
		}
		messages, _ := h.received()
		if got := messages[len(messages)-1]; got != body {
			t.Fatalf("body %d: arrived %q, want %q", seed, got, body)
		}
	}
}

// A dot at the beginning of a line is doubled wherever the pieces are cut that are written under one deadline: a body that is in memory comes
// in one write.
func TestDotIsDoubledAtTheCutOfPieces(t *testing.T) {
	t.Parallel()
	h := &host{extensions: []string{"PIPELINING"}}
	connection, err := open(t, h, func(target *send.Target) {
		target.Timeouts = send.Timeouts{Command: 5 * time.Second, Data: 5 * time.Second}
	})
	if err != nil {
		t.Fatal(err)
	}
	const piece = 64 << 10
	for _, before := range []int{piece - 3, piece - 2, piece - 1, piece, piece + 1, 2*piece - 2, 2 * piece, 2*piece + 2} {
		for _, end := range []string{".b\r\n", ".\r\nb\r\n", "."} {
			body := strings.Repeat("x", before-2) + "\r\n" + end
			message := letter(body, "a@b.example")
			message.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(body))), nil }
			if got := outcome(connection.Send(t.Context(), message)); got != "delivered 2.0.0" {
				t.Fatalf("%d bytes and %q: %s", before, end, got)
			}
			messages, _ := h.received()
			if got := messages[len(messages)-1]; strings.TrimSuffix(got, "\r\n") != strings.TrimSuffix(body, "\r\n") {
				t.Fatalf("%d bytes and %q: %d of %d bytes arrived, at the end %q", before, end, len(got), len(body), got[max(len(got)-10, 0):])
			}
		}
	}
}

func TestBodyThatCannotBeReadIsNotAcceptedInPart(t *testing.T) {
	t.Parallel()
	h := &host{extensions: []string{"PIPELINING", "8BITMIME"}}
	connection, err := open(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	message := letter("", "a@b.example")
	message.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("Subject: x\r\n\r\nhalf"), failingReader{})), nil
	}
	results := connection.Send(context.Background(), message)
	connection.Close()
	if got := outcome(results); got != "deferred 4.4.2" || connection.Usable() {
		t.Errorf("result is %s, usable %v", got, connection.Usable())
	}
	if messages, _ := h.received(); len(messages) != 0 {
		t.Errorf("the host accepted %q", messages)
	}
}
