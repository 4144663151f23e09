package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

const (
	// secretTime is how long a program may take that gives a secret.
	secretTime = 10 * time.Second
	// secretBytes is how long a secret may be.
	secretBytes = 64 << 10
)

// secretsOf gives the function by which an adapter reads the secrets of a definition. Each is read anew each time, and not kept or logged.
func secretsOf(references map[string]string, permission adapter.Permission) func(context.Context, string) (string, bool, error) {
	return func(ctx context.Context, name string) (value string, found bool, err error) {
		reference, found := references[name]
		if !found {
			return "", false, nil
		}
		value, err = readSecret(ctx, reference, permission)
		if err != nil {
			return "", true, fmt.Errorf("read the secret %s: %w", name, err)
		}
		return value, true, nil
	}
}

// readSecret reads what a reference leads to. A line's end behind it is none of it.
func readSecret(ctx context.Context, reference string, permission adapter.Permission) (string, error) {
	if err := permission.CheckSecret(reference); err != nil {
		return "", err
	}
	kind, rest, _ := strings.Cut(reference, ":")
	var value []byte
	switch kind {
	case "env":
		text, isSet := os.LookupEnv(rest)
		if !isSet {
			return "", fmt.Errorf("the variable %s is not set for this process", rest)
		}
		value = []byte(text)
	case "file":
		file, err := os.Open(rest)
		if err != nil {
			return "", err
		}
		defer file.Close()
		if value, err = io.ReadAll(io.LimitReader(file, secretBytes+1)); err != nil {
			return "", err
		}
	case "command":
		ctx, cancel := context.WithTimeout(ctx, secretTime)
		defer cancel()
		words := strings.Fields(rest)
		if len(words) == 0 {
			return "", errors.New("the reference names no program")
		}
		program := exec.CommandContext(ctx, words[0], words[1:]...)
		program.WaitDelay = time.Second
		written := &bounded{most: secretBytes + 1}
		program.Stdout = written // what it writes to standard error may hold the secret, and is not shown
		if err := program.Run(); err != nil && len(written.bytes) <= secretBytes {
			return "", fmt.Errorf("run %s: %w", words[0], err)
		}
		value = written.bytes
	default:
		return "", fmt.Errorf("the reference begins with %q instead of env, file or command", kind)
	}
	if len(value) > secretBytes {
		return "", fmt.Errorf("it has more than %d bytes", secretBytes)
	}
	return strings.TrimSuffix(string(bytes.TrimSuffix(value, []byte("\n"))), "\r"), nil
}

// bounded keeps what is written, up to so many bytes.
type bounded struct {
	bytes []byte
	most  int
}

// Write takes what there is room for; an error ends the program that writes more.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.most-len(b.bytes))
	b.bytes = append(b.bytes, p[:n]...)
	if n < len(p) {
		return n, errors.New("it is too long for a secret")
	}
	return n, nil
}

// checkSecrets gives the first secret of a definition that may not be read on this node.
func checkSecrets(references map[string]string, permission adapter.Permission) error {
	for _, name := range names(references) {
		if err := permission.CheckSecret(references[name]); err != nil {
			return err
		}
	}
	return nil
}
