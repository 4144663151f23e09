package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/hop"
)

// benthosVariable makes this program Benthos instead of Parley.
const benthosVariable = "PARLEY_BENCH_BENTHOS"

// benthosPeer is Benthos, which keeps nothing: how fast a hop is without durability.
func benthosPeer() bench.HopPeer {
	return bench.HopPeer{
		Name:    "benthos",
		Short:   "Benthos 4.60.0: from a socket to a socket",
		Promise: "nothing is stored and nothing is acknowledged: a crash loses all that is on its way",
		Frames:  hop.Lines{},
		Missing: func() string { return "" },
		Start: func(ctx context.Context, place bench.HopPlace) (func(context.Context) error, error) {
			program, err := os.Executable()
			if err != nil {
				return nil, fmt.Errorf("find this program: %w", err)
			}
			e, err := startEngine(ctx, exec.Command(program),
				benthosVariable+"=1", "PEER_LISTEN="+place.Listen, "PEER_TARGET="+place.Target)
			if err != nil {
				return nil, err
			}
			return e.stop, nil
		},
	}
}

// runBenthos runs Benthos until its standard input ends.
func runBenthos(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	builder := service.NewStreamBuilder()
	err := builder.SetYAML(fmt.Sprintf(`
logger: {level: "OFF"}
input:
  socket_server: {network: tcp, address: %q, scanner: {lines: {}}}
output:
  socket: {network: tcp, address: %q, codec: lines}
`, os.Getenv("PEER_LISTEN"), os.Getenv("PEER_TARGET")))
	if err != nil {
		return fmt.Errorf("configure Benthos: %w", err)
	}
	stream, err := builder.Build()
	if err != nil {
		return fmt.Errorf("build a stream of Benthos: %w", err)
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	go awaitListening(ctx, os.Getenv("PEER_LISTEN"))
	if err := stream.Run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run Benthos: %w", err)
	}
	return nil
}
