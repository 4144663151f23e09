package cli

import (
	"context"
	"fmt"
	"net"
	"os"
)

// tellSystemd says that the daemon works, and when it winds down.
func (s *serving) tellSystemd(ctx context.Context) {
	if err := notifySystemd(ctx, "READY=1"); err != nil {
		s.logger.Warn("nobody was told that the daemon is ready", "error", err)
		return
	}
	context.AfterFunc(ctx, func() { _ = notifySystemd(context.WithoutCancel(ctx), "STOPPING=1") })
}

// notifySystemd tells the manager that started the daemon how it is, if it asked to be told (Type=notify): READY=1 when it
// works, STOPPING=1 when it winds down.
func notifySystemd(ctx context.Context, state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	// An address with @ in front is in the abstract namespace, as package net has it too.
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixgram", address)
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}
