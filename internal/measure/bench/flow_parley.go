package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// startParley defines a hop in a database with the broker and starts a node that serves it.
func (f *flow) startParley(ctx context.Context, place HopPlace) (func(ctx context.Context) error, error) {
	return f.startWith(ctx, place, hopDefinitions)
}

// startOrchestration does the same with an orchestration between the location and the port.
func (f *flow) startOrchestration(ctx context.Context, place HopPlace) (func(ctx context.Context) error, error) {
	return f.startWith(ctx, place, orchestrationDefinitions)
}

func (f *flow) startWith(
	ctx context.Context, place HopPlace, definitionsOf func(place HopPlace, role string) map[string]any,
) (func(ctx context.Context) error, error) {
	d := database{name: place.Database.Database, config: place.Database}
	flags := []string{"--allow-listen", place.Listen, "--allow-connect", place.Target}
	return f.startFlow(ctx, d, place.Folder, place.Listen, flags, func(role string) map[string]any { return definitionsOf(place, role) })
}

// defineFlow applies definitions in a database with the broker.
func defineFlow(ctx context.Context, conn *pgx.Conn, definitions func(role string) map[string]any) error {
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

// orderType is the type of the messages that are measured.
const orderType = "http://bench.example/orders#Order"

// hopDefinitions are a location, a type of message, and a port that subscribes to it.
func hopDefinitions(place HopPlace, role string) map[string]any {
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

// orchestrationDefinitions are those of a hop whose port gets what an orchestration sends, which takes each message and sends it on.
func orchestrationDefinitions(place HopPlace, role string) map[string]any {
	definitions := hopDefinitions(place, role)
	delete(definitions["send port"].(map[string]any)["TCP out"].(map[string]any), "filter")
	definitions["orchestration"] = map[string]any{"Forward": map[string]any{
		"application": "Bench", "host": "Hop", "messages": map[string]any{"order": orderType},
		"ports": map[string]any{"out": map[string]any{"send_port": "TCP out"}},
		"body": []map[string]any{
			{"receive": map[string]any{"message": "order", "activate": true}}, {"send": map[string]any{"message": "order", "port": "out"}},
		},
		"activations": []map[string]any{{
			"receive": "0", "filter": [][]map[string]any{{{"property": "MessageType", "operator": "=", "value": orderType}}},
		}},
	}}
	return definitions
}
