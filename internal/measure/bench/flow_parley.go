package bench

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/schema"
)

// startParley defines a hop in an empty database and starts a node that serves it.
func (f *flow) startParley(ctx context.Context, place HopPlace) (func(ctx context.Context) error, error) {
	d := database{name: place.Database.Database, config: place.Database}
	err := d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := schema.Install(ctx, conn); err != nil {
			return fmt.Errorf("install the schema: %w", err)
		}
		var role string
		if err := conn.QueryRow(ctx, "select current_user").Scan(&role); err != nil {
			return fmt.Errorf("read the role: %w", err)
		}
		definitions, err := json.Marshal(hopDefinitions(place, role))
		if err != nil {
			return fmt.Errorf("write the definitions of the hop: %w", err)
		}
		if _, err := conn.Exec(ctx, "select from parley_flow.apply(definitions => $1::jsonb)", string(definitions)); err != nil {
			return fmt.Errorf("define the hop: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.daemons++
	daemon, err := site.StartDaemon(ctx, site.DaemonConfig{
		Program: f.Program, Name: fmt.Sprintf("flow%d", f.daemons), Folder: place.Folder, DSNs: []string{d.dsn()}, System: "flow",
		ReadyAt: place.Listen,
		Args:    []string{"--allow-listen", place.Listen, "--allow-connect", place.Target, "--log-level", "warn"},
	})
	if err != nil {
		return nil, err
	}
	return daemon.Stop, nil
}

// hopDefinitions are a location, a type of message, and a port that subscribes to it.
func hopDefinitions(place HopPlace, role string) map[string]any {
	const orderType = "http://bench.example/orders#Order"
	return map[string]any{
		"application": map[string]any{"Bench": map[string]any{"tracking": true}},
		"host":        map[string]any{"Hop": map[string]any{"role": role}},
		"message type": map[string]any{orderType: map[string]any{
			"application": "Bench", "format": "xml",
		}},
		"receive port": map[string]any{"In": map[string]any{"application": "Bench"}},
		"receive location": map[string]any{"TCP in": map[string]any{
			"receive_port": "In", "host": "Hop", "adapter": "TCP", "address": place.Listen, "pipeline": "XMLReceive",
			"settings": map[string]any{"max_connections": 1000},
		}},
		"send port": map[string]any{"TCP out": map[string]any{
			"application": "Bench", "host": "Hop", "adapter": "TCP", "address": place.Target, "pipeline": "PassThruTransmit",
			"filter":   [][]map[string]any{{{"property": "MessageType", "operator": "=", "value": orderType}}},
			"settings": map[string]any{"connections": 2},
		}},
	}
}
