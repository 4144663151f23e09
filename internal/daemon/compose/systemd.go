package compose

import (
	"context"
	"fmt"
	"net"
	"os"
)

// reportToSystemd reports that the daemon works, and when it stops.
func (d *Daemon) reportToSystemd(ctx context.Context) {
	if err := notifySystemd(ctx, "READY=1"); err != nil {
		d.Logger.Warn("the service manager was not notified that the daemon is ready", "error", err)
		return
	}
	context.AfterFunc(ctx, func() { _ = notifySystemd(context.WithoutCancel(ctx), "STOPPING=1") })
}

// notifySystemd sends a state, READY=1 or STOPPING=1, to the service manager that started the daemon, if its unit has Type=notify.
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
