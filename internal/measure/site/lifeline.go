package site

import (
	"context"
	"io"
	"os"
)

// lifelineVariable marks for a daemon that its standard input is the pipe to the program that started it.
const lifelineVariable = "PARLEY_LIFELINE"

// WithLifeline gives a context that ends with the program that has started this one, if that was [StartDaemon]: the kernel closes
// the pipe between them even when the parent was killed. Every main function that may be started so begins with it.
func WithLifeline(ctx context.Context) context.Context {
	if os.Getenv(lifelineVariable) == "" {
		return ctx
	}
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}
