package postfix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// owner is the account of Postfix, and dropGroup the group that may submit.
const (
	owner     = "postfix"
	dropGroup = "postdrop"
)

// RelayConfig names the mail that a Postfix relays.
type RelayConfig struct {
	// Folder is an empty folder that everybody may pass through.
	Folder string
	// Listen is where it takes mail, and Next the host that gets it, both as address:port; Routes are other hosts for some domains.
	Listen, Next string
	Routes       map[string]string
}

// Relay is a running Postfix of our own.
type Relay struct {
	config  RelayConfig
	program string
}

// StartRelay starts a Postfix that takes mail from this machine and relays all of it. It keeps its queue in the folder, synced to the disk
// as every Postfix does. The caller must Stop it.
func StartRelay(ctx context.Context, config RelayConfig) (*Relay, error) {
	if err := RequireRelay(); err != nil {
		return nil, err
	}
	program, err := find("postfix")
	if err != nil {
		return nil, err
	}
	r := &Relay{config: config, program: program}
	if err := r.write(); err != nil {
		return nil, err
	}
	if err := r.command(ctx, "start"); err != nil {
		return nil, err
	}
	if err := awaitGreeting(ctx, config.Listen, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("start Postfix: %w", err), r.Stop(ctx))
	}
	return r, nil
}

func (r *Relay) path(name string) string { return filepath.Join(r.config.Folder, name) }

// write makes its folders and its configuration.
func (r *Relay) write() error {
	for _, folder := range []string{"queue", "data", "conf"} {
		if err := os.Mkdir(r.path(folder), 0o755); err != nil { //nolint:gosec // Postfix's account passes through it.
			return fmt.Errorf("make a folder for Postfix: %w", err)
		}
	}
	if err := chown(r.path("data"), owner); err != nil {
		return err
	}
	routes := make([]string, 0, len(r.config.Routes))
	for domain, host := range r.config.Routes {
		routes = append(routes, fmt.Sprintf("%s=smtp:%s", domain, inBrackets(host)))
	}
	slices.Sort(routes)
	main := strings.NewReplacer(
		"{folder}", r.config.Folder, "{owner}", owner, "{group}", dropGroup, "{next}", inBrackets(r.config.Next),
		"{routes}", strings.Join(routes, ", "),
	).Replace(mainSettings)
	services := strings.ReplaceAll(services, "{listen}", r.config.Listen)
	for name, text := range map[string]string{"main.cf": main, "master.cf": services} {
		path := filepath.Join(r.path("conf"), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("configure Postfix: %w", err)
		}
	}
	return nil
}

// inBrackets writes host:port as Postfix takes an address: without a search for exchangers.
func inBrackets(address string) string {
	host, port, _ := strings.Cut(address, ":")
	return "[" + host + "]:" + port
}

// command runs a command of postfix on our configuration alone.
func (r *Relay) command(ctx context.Context, name string) error {
	var out bytes.Buffer
	command := exec.CommandContext(ctx, r.program, "-c", r.path("conf"), name)
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return fmt.Errorf("postfix %s: %w: %s", name, err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

// Waiting is how many messages it has, as files of its queue.
func (r *Relay) Waiting() (files int) {
	for _, queue := range []string{"incoming", "active", "deferred"} {
		_ = filepath.WalkDir(r.path("queue/"+queue), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				files++
			}
			return nil
		})
	}
	return files
}

// Stop stops it, also when ctx has ended.
func (r *Relay) Stop(ctx context.Context) error {
	return r.command(context.WithoutCancel(ctx), "stop")
}
