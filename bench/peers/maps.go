package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// mapWarmUp is how long Camel maps documents before it is measured, until its machine has compiled what it runs.
const mapWarmUp = 5 * time.Second

// camelMapPeer is a route of Camel with its component xslt, driven by one thread.
func camelMapPeer() bench.MapPeer {
	return bench.MapPeer{
		Name:    "camel-xslt",
		Short:   "Camel 4.22.0: a route with its component xslt, one thread in one process, warmed up for " + mapWarmUp.String(),
		Missing: missingJava, Start: startCamelMap,
	}
}

func startCamelMap(ctx context.Context, place bench.MapPlace) (bench.MapEngine, error) {
	classes, err := buildJava(ctx, "camel")
	if err != nil {
		return bench.MapEngine{}, err
	}
	result := filepath.Join(place.Folder, "result.xml")
	lines := make(chan string, 1)
	e, err := startReporting(ctx, exec.Command("java", "-cp", classes, "peer.Maps"), func(line string) { lines <- line },
		"PEER_STYLESHEET="+place.Stylesheet, "PEER_DOCUMENT="+place.Document, "PEER_RESULT="+result,
		"PEER_WARM_UP_MS="+strconv.FormatInt(mapWarmUp.Milliseconds(), 10))
	if err != nil {
		return bench.MapEngine{}, err
	}
	made, err := os.ReadFile(result)
	if err != nil {
		return bench.MapEngine{}, errors.Join(fmt.Errorf("read the result of the map: %w", err), e.stop(ctx))
	}
	return bench.MapEngine{
		Result: made, Stop: e.stop,
		Run: func(ctx context.Context, documents int) (time.Duration, error) {
			if _, err := fmt.Fprintln(e.lifeline, documents); err != nil {
				return 0, fmt.Errorf("ask Camel for maps: %w", err)
			}
			select {
			case line := <-lines:
				took, err := strconv.ParseInt(line, 10, 64)
				if err != nil {
					return 0, fmt.Errorf("read how long Camel took: %w", err)
				}
				return time.Duration(took), nil
			case <-e.ended:
				return 0, fmt.Errorf("the engine ended while it mapped: %s", e.log.String())
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		},
	}, nil
}
