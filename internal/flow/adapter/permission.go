package adapter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/publicdial"
)

// ErrNotPermitted is the error of definitions that name something which the operator of the node does not let them reach.
var ErrNotPermitted = errors.New("not permitted by the operator of this node")

// Permission lists the folders, addresses and secrets that definitions may name: whoever may write definitions is not whoever runs the
// node. The zero value permits nothing.
type Permission struct {
	Folders []string // absolute; with all below them
	Listen  []string // host:port, where host or port may be *
	Connect []string // host:port, where host or port may be *; * stands for hosts with public addresses only
	Secrets []string // references, env:NAME, file:/path, command:/path; * at the end stands for anything
}

// Check returns an error for each entry that permits nothing because of how it is written.
func (p Permission) Check() error {
	var faults []error
	for _, folder := range p.Folders {
		if !filepath.IsAbs(folder) {
			full, _ := filepath.Abs(folder)
			faults = append(faults, fmt.Errorf("--allow-folder %q is no full path; give it whole, such as %s", folder, full))
		}
	}
	for flag, addresses := range map[string][]string{"--allow-listen": p.Listen, "--allow-connect": p.Connect} {
		for _, address := range addresses {
			if _, _, err := net.SplitHostPort(address); err != nil {
				faults = append(faults, fmt.Errorf("%s %q is no host:port; give both, such as '%s:*'", flag, address, address))
			}
		}
	}
	for _, secret := range p.Secrets {
		if kind, _, _ := strings.Cut(secret, ":"); kind != "env" && kind != "file" && kind != "command" {
			faults = append(faults, fmt.Errorf("--allow-secret %q is no reference; begin with env:, file:/ or command:/, such as env:%s",
				secret, secret))
		}
	}
	return errors.Join(faults...)
}

// CheckListen returns an error unless a port may be opened at address, host:port.
func (p Permission) CheckListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the address %q is not host:port: %w", address, err)
	}
	for _, permitted := range p.Listen {
		h, po, err := net.SplitHostPort(permitted)
		if err == nil && (h == "*" || h == host) && (po == "*" || po == port) {
			return nil
		}
	}
	return fmt.Errorf("listening on %s is %w; permit it with --allow-listen %s", address, ErrNotPermitted, address)
}

// CheckConnect returns an error unless a connection to host:port may be made. public says that only public addresses may be dialled:
// the host is not named by the operator.
func (p Permission) CheckConnect(address string) (public bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("the address %q is not host:port: %w", address, err)
	}
	anyHost := false
	for _, permitted := range p.Connect {
		h, po, err := net.SplitHostPort(permitted)
		if err != nil || po != "*" && po != port {
			continue
		}
		if strings.EqualFold(h, host) {
			return false, nil
		}
		anyHost = anyHost || h == "*"
	}
	if !anyHost {
		return false, fmt.Errorf("connecting to %s is %w; permit it with --allow-connect %s", address, ErrNotPermitted, address)
	}
	if at, err := netip.ParseAddr(host); err == nil && !publicdial.IsPublic(at) {
		return false, fmt.Errorf("connecting to %s, which is no public address, is %w; name it with --allow-connect %s",
			address, ErrNotPermitted, address)
	}
	return true, nil
}

// CheckFolder returns an error unless files in a folder may be read and written.
func (p Permission) CheckFolder(folder string) error {
	clean := filepath.Clean(folder)
	if !filepath.IsAbs(clean) {
		return fmt.Errorf("the folder %q is not an absolute path", folder)
	}
	within := func(permitted string) bool {
		rest, err := filepath.Rel(filepath.Clean(permitted), clean)
		return err == nil && filepath.IsLocal(rest)
	}
	if !slices.ContainsFunc(p.Folders, within) {
		return fmt.Errorf("the folder %s is %w; permit it with --allow-folder %s", clean, ErrNotPermitted, clean)
	}
	return nil
}

// CheckSecret returns an error unless the value of a reference may be read.
func (p Permission) CheckSecret(reference string) error {
	if kind, path, found := strings.Cut(reference, ":"); found && kind != "env" && filepath.Clean(path) != path {
		return fmt.Errorf("the secret %s is %w: write its path without ., .. and double slashes", reference, ErrNotPermitted)
	}
	for _, permitted := range p.Secrets {
		prefix, isPrefix := strings.CutSuffix(permitted, "*")
		if reference == permitted || isPrefix && prefix != "" && strings.HasPrefix(reference, prefix) {
			return nil
		}
	}
	return fmt.Errorf("the secret %s is %w; permit it with --allow-secret %s", reference, ErrNotPermitted, reference)
}
