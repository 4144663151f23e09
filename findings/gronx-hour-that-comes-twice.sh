#!/usr/bin/env bash
# github.com/adhocore/gronx v1.20.4, Go 1.26: where the clock goes back, an hour of the night comes twice. NextTickAfter leaves one of the two out, for hourly
# work too: nothing runs for two hours. By cron(8) of Debian work that is not less often than hourly goes on as it is. Work of each half hour has
# the gap in Berlin and none in New York, so that a test in one zone says nothing of another.
#
# Seen:
#   Europe/Berlin, 0 * * * *: at most 2h0m0s without a run
#   Europe/Berlin, */30 * * * *: at most 1h30m0s without a run
#   America/New_York, 0 * * * *: at most 2h0m0s without a run
#   America/New_York, */30 * * * *: at most 30m0s without a run
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'END'
module example
go 1.24
require github.com/adhocore/gronx v1.20.4
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/adhocore/gronx"
)

func main() {
	for _, t := range []struct {
		zone string
		day  int
	}{{"Europe/Berlin", 24}, {"America/New_York", 31}} {
		zone, err := time.LoadLocation(t.zone)
		if err != nil {
			panic(err)
		}
		for _, line := range []string{"0 * * * *", "*/30 * * * *"} {
			at := time.Date(2026, time.October, t.day, 20, 0, 0, 0, zone)
			var most time.Duration
			for end := at.Add(12 * time.Hour); at.Before(end); {
				next, err := gronx.NextTickAfter(line, at, false)
				if err != nil {
					panic(err)
				}
				most = max(most, next.Sub(at))
				at = next
			}
			fmt.Printf("%s, %s: at most %s without a run\n", t.zone, line, most)
		}
	}
}
END
export GOFLAGS=-mod=mod
go run . | tee seen
diff seen - <<'END'
Europe/Berlin, 0 * * * *: at most 2h0m0s without a run
Europe/Berlin, */30 * * * *: at most 1h30m0s without a run
America/New_York, 0 * * * *: at most 2h0m0s without a run
America/New_York, */30 * * * *: at most 30m0s without a run
END
