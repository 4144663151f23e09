package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-broker/parley/internal/measure/site"
)

// dialogSettings are for a server with all those sessions: 150 that send, and the daemons' and readers' of up to 100 databases.
var dialogSettings = map[string]string{"max_connections": "2000"}

// openServers makes a folder for daemons, and servers unless there is a DSN.
func (b *bench) openServers(ctx context.Context) (err error) {
	if b.folder, err = site.NewFolder(); err != nil {
		return err
	}
	switch {
	case b.DSN != "" && b.Dialog.SeparateServers:
		return errors.New("servers of its own for each database are private ones: they do not go with a DSN")
	case b.DSN != "":
		return nil
	}
	names := []string{"target"}
	if b.Dialog.SeparateServers {
		for i := range paperInitiators {
			names = append(names, fmt.Sprintf("initiator%d", i+1))
		}
	}
	b.progress("starting %d private servers", len(names))
	b.servers, err = site.StartServers(ctx, b.folder, names, site.ServerConfig{
		Version: b.Dialog.PostgresVersion, Settings: b.serverSettings, Logger: b.Dialog.Logger,
	})
	if err != nil {
		return err
	}
	b.DSN = b.servers.DSN(0, "postgres")
	return nil
}

// closeServers stops what openServers has started, also when ctx has ended.
func (b *bench) closeServers(ctx context.Context) error {
	var failures []error
	for _, place := range b.places {
		failures = append(failures, place.cluster.cleanUp(ctx))
	}
	if b.servers != nil {
		failures = append(failures, b.servers.Stop(ctx))
	}
	if b.folder != nil {
		failures = append(failures, b.folder.Remove())
	}
	return errors.Join(failures...)
}
