#!/usr/bin/env bash
# github.com/robfig/cron/v3 v3.0.1, Go 1.26: in a zone whose clock moves by half an hour (Lord Howe Island), a daily run at midnight is left out on the day
# after the clock went forward, and one at 03:00 on the day itself. Both times are there on the clock. The documentation warns of times that
# the clock leaves out alone. A run at 01:30 is followed by another half an hour later, when the clock shows 02:30.
#
# Seen:
#   0 0 * * *: 2026-10-03 00:00, 2026-10-04 00:00, 2026-10-06 00:00
#   0 3 * * *: 2026-10-03 03:00, 2026-10-05 03:00, 2026-10-06 03:00
#   30 1 * * *: 2026-10-03 01:30, 2026-10-04 01:30, 2026-10-04 02:30
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'END'
module example
go 1.24
require github.com/robfig/cron/v3 v3.0.1
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	zone, err := time.LoadLocation("Australia/Lord_Howe")
	if err != nil {
		panic(err)
	}
	for _, line := range []string{"0 0 * * *", "0 3 * * *", "30 1 * * *"} {
		schedule, err := cron.ParseStandard(line)
		if err != nil {
			panic(err)
		}
		at := time.Date(2026, time.October, 2, 12, 0, 0, 0, zone)
		var runs []string
		for range 3 {
			at = schedule.Next(at)
			runs = append(runs, at.Format("2006-01-02 15:04"))
		}
		fmt.Printf("%s: %s\n", line, strings.Join(runs, ", "))
	}
}
END
export GOFLAGS=-mod=mod
go run . | tee seen
diff seen - <<'END'
0 0 * * *: 2026-10-03 00:00, 2026-10-04 00:00, 2026-10-06 00:00
0 3 * * *: 2026-10-03 03:00, 2026-10-05 03:00, 2026-10-06 03:00
30 1 * * *: 2026-10-03 01:30, 2026-10-04 01:30, 2026-10-04 02:30
END
