package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/schema"
)

// startParley defines a hop in an empty database and starts a node that serves it.
func (f *flow) startParley(ctx context.Context, place HopPlace) (func(ctx context.Context) error, error) {
	d := database{name: place.Database.Database, config: place.Database}
	flags := []string{"--allow-listen", place.Listen, "--allow-connect", place.Target}
	return f.startFlow(ctx, d, place.Folder, place.Listen, flags, func(role string) map[string]any { return hopDefinitions(place, role) })
}

// defineFlow installs the schema and applies definitions.
func defineFlow(ctx context.Context, conn *pgx.Conn, definitions func(role string) map[string]any) error {
	if err := schema.Install(ctx, conn); err != nil {
		return fmt.Errorf("install the schema: %w", err)
	}
	var role string
	if err := conn.QueryRow(ctx, "select current_user").Scan(&role); err != nil {
		return fmt.Errorf("read the role: %w", err)
	}
	written, err := writeDefinitions(definitions(role))
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "select from parley_flow.apply(definitions => $1::jsonb)", written); err != nil {
		return fmt.Errorf("apply the definitions: %w", err)
	}
	return nil
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
