package site

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// makeIdentity gives the daemon a key of its own, and returns the folder that holds it.
func (d *Daemon) makeIdentity() (folder string, err error) {
	folder = filepath.Join(d.config.Folder, d.config.Name+"-identity")
	keys, err := identity.OpenFolder(folder)
	if err != nil {
		return "", err
	}
	d.certificate, _, err = keys.Create(identity.Config{Name: d.config.Name})
	if err != nil {
		return "", fmt.Errorf("make a key for daemon %s: %w", d.config.Name, err)
	}
	return folder, nil
}

// BeTrusted lets a database trust the daemon, which it meets at this host and port: what parley pair does when people have compared
// the fingerprints that both sides show.
func (d *Daemon) BeTrusted(ctx context.Context, db parley.DB, address string) error {
	return truststore.TrustPeer(ctx, db, truststore.NewPeer{
		Fingerprint: d.certificate.Fingerprint.String(), Name: d.config.Name, Certificate: d.certificate.Leaf.Raw, Address: "tcp://" + address,
	})
}
