package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, is := stream.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// ctrlC is the key that drops what is typed.
const ctrlC = 3

// keys are the bytes of a terminal, which notes that Ctrl-C came.
type keys struct {
	*os.File
	isInterrupted bool
}

// Read reads keys.
func (k *keys) Read(to []byte) (int, error) {
	n, err := k.File.Read(to)
	k.isInterrupted = k.isInterrupted || bytes.IndexByte(to[:n], ctrlC) >= 0
	return n, err
}

// errDropped says that Ctrl-C dropped the line.
var errDropped = errors.New("the line was dropped")

// A prompt asks for lines on a terminal, which is raw only meanwhile: while a batch runs, Ctrl-C is a signal.
type prompt struct {
	in      *keys
	out     io.Writer
	editor  *term.Terminal
	history *history
}

// begin begins with an empty line.
func (p *prompt) begin() {
	p.in.isInterrupted = false
	p.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{p.in, p.out}, "")
	p.editor.History = p.history
}

// line asks for a line. io.EOF says that the user leaves.
func (p *prompt) line(ctx context.Context, text string) (string, error) {
	fd := int(p.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("taking the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }()
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = p.editor.SetSize(width, height)
	}
	p.editor.SetPrompt(text)
	type typed struct {
		line string
		err  error
	}
	given := make(chan typed, 1)
	// A read of a terminal cannot be cancelled; where the process is told to end, it ends with this one.
	go func() {
		line, err := p.editor.ReadLine()
		given <- typed{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", io.EOF
	case got := <-given:
		if errors.Is(got.err, io.EOF) && p.in.isInterrupted {
			return "", errDropped
		}
		if errors.Is(got.err, term.ErrPasteIndicator) {
			got.err = nil
		}
		return got.line, got.err
	}
}

// prompt runs what is typed until the user leaves. Ctrl-C ends the batch that runs, or drops the lines that are typed.
func (c *client) prompt(ctx context.Context, options script.Options) error {
	in, _ := c.app.Stdin.(*os.File)
	// The command ends by Ctrl-C, its prompt does not.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p := &prompt{in: &keys{File: in}, out: c.app.Stdout, history: readHistory(historyPath())}
	p.begin()
	if err := c.output.say("GO runs what is typed, :help lists the commands, :exit leaves."); err != nil {
		return err
	}
	pressed := make(chan os.Signal, 1)
	signal.Notify(pressed, os.Interrupt)
	defer signal.Stop(pressed)
	var failed error
	feed := script.NewFeed(options, func(b *script.Batch) bool {
		failed = c.runInterruptible(ctx, b, pressed)
		return failed == nil && !c.hasExit
	})
	for {
		line, err := p.line(ctx, fmt.Sprintf("%d> ", feed.Lines()+1))
		switch {
		case errors.Is(err, errDropped):
			feed.Reset()
			p.begin()
			if err := c.output.say(""); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF):
			return c.output.say("")
		case err != nil:
			return fmt.Errorf("reading the terminal: %w", err)
		}
		if err := feed.Add(line); err != nil {
			if err := c.refused(err); err != nil {
				return err
			}
		}
		if failed != nil || feed.HasEnded() {
			return failed
		}
	}
}

// refused says what is wrong with a line; the prompt goes on.
func (c *client) refused(err error) error {
	fault, is := errors.AsType[*script.Error](err)
	if !is {
		return c.output.say(err.Error())
	}
	return c.output.say(fault.Message + "\n" + fault.Hint)
}

// runInterruptible runs a batch, which Ctrl-C ends.
func (c *client) runInterruptible(ctx context.Context, batch *script.Batch, pressed <-chan os.Signal) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	select {
	case <-pressed: // it was meant for the batch before
	default:
	}
	go func() {
		select {
		case <-pressed:
			cancel(session.ErrAttention)
		case <-running.Done():
		}
	}()
	err := c.runBatch(running, batch)
	if !errors.Is(context.Cause(running), session.ErrAttention) || err != nil {
		return err
	}
	text := "The batch was cancelled."
	if c.session.IsInTransaction() {
		text += " Its transaction is still open: COMMIT or ROLLBACK ends it."
	}
	return c.output.say(text)
}
