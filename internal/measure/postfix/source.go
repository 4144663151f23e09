package postfix

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
)

// Injection is the mail that smtp-source sends.
type Injection struct {
	Address            string // host:port
	Sessions, Messages int
	Size               int // bytes of a body
	Sender, Recipient  string
}

// Inject sends messages over so many connections, each as fast as it is answered, and returns when all are accepted.
func Inject(ctx context.Context, i Injection) error {
	program, err := find("smtp-source")
	if err != nil {
		return err
	}
	var complaints bytes.Buffer
	command := exec.CommandContext(ctx, program, "-d", "-4",
		"-s", strconv.Itoa(min(i.Sessions, i.Messages)), "-m", strconv.Itoa(i.Messages), "-l", strconv.Itoa(i.Size),
		"-f", i.Sender, "-t", i.Recipient, "inet:"+i.Address)
	command.Stderr = &complaints
	if err := command.Run(); err != nil {
		return fmt.Errorf("send messages with smtp-source: %w: %s", err, bytes.TrimSpace(complaints.Bytes()))
	}
	return nil
}
