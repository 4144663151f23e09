package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// steadyInjector sends messages at a constant rate, whatever the server makes of them, over connections that are used again.
type steadyInjector struct {
	rate     float64
	wire     []byte // a message with its final dot
	accepted atomic.Int64

	begun    time.Time
	messages int64 // how many are sent at most
	next     atomic.Int64
	stop     context.CancelFunc
	sessions sync.WaitGroup
	failed   chan error
}

// startSteady begins to send for so long.
func startSteady(ctx context.Context, address string, load mailLoad, rate float64, lasts time.Duration) *steadyInjector {
	i := &steadyInjector{
		rate: rate, wire: steadyMessage(load.size), begun: time.Now(), messages: int64(rate * lasts.Seconds()),
		failed: make(chan error, load.sessions),
	}
	ctx, i.stop = context.WithCancel(ctx)
	for range load.sessions {
		i.sessions.Go(func() {
			if err := i.session(ctx, address); err != nil && ctx.Err() == nil {
				i.failed <- fmt.Errorf("send messages at %.0f a second: %w", rate, err)
			}
		})
	}
	return i
}

// end waits until all is sent.
func (i *steadyInjector) end() error {
	i.sessions.Wait()
	i.stop()
	select {
	case err := <-i.failed:
		return err
	default:
		return nil
	}
}

// session sends each message that is due and that no other session has.
func (i *steadyInjector) session(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	text := textproto.NewConn(conn)
	defer func() { _ = text.Close() }()
	if _, _, err := text.ReadResponse(220); err != nil {
		return err
	}
	if err := command(text, 250, "EHLO source.example"); err != nil {
		return err
	}
	for n := i.next.Add(1) - 1; n < i.messages; n = i.next.Add(1) - 1 {
		if !waitUntil(ctx, i.begun.Add(time.Duration(float64(n)/i.rate*float64(time.Second)))) {
			return context.Cause(ctx)
		}
		if err := i.send(text); err != nil {
			return err
		}
		i.accepted.Add(1)
	}
	return command(text, 221, "QUIT")
}

func (i *steadyInjector) send(text *textproto.Conn) error {
	for _, c := range []struct {
		line string
		code int
	}{{"MAIL FROM:<" + mailSender + ">", 250}, {"RCPT TO:<someone@" + mailDomain + ">", 250}, {"DATA", 354}} {
		if err := command(text, c.code, c.line); err != nil {
			return err
		}
	}
	if _, err := text.W.Write(i.wire); err != nil {
		return err
	}
	if err := text.W.Flush(); err != nil {
		return err
	}
	_, _, err := text.ReadResponse(250)
	return err
}

// command gives a command, and expects a reply.
func command(text *textproto.Conn, code int, line string) error {
	if _, err := text.Cmd("%s", line); err != nil {
		return err
	}
	_, _, err := text.ReadResponse(code)
	return err
}

// steadyMessage is a message of so many bytes, as DATA has it.
func steadyMessage(size int) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "From: <%s>\r\nTo: <someone@%s>\r\nSubject: steady\r\n\r\n", mailSender, mailDomain)
	line := strings.Repeat("X", 76) + "\r\n"
	for text.Len()+len(line) <= size {
		text.WriteString(line)
	}
	text.WriteString(".\r\n")
	return text.Bytes()
}
