#!/usr/bin/env bash
# github.com/sosodev/duration v1.4.0, Go 1.26: Format and FromTimeDuration write hours as years and months, with a month of 730 hours and a
# year of 8760; their comments say no more than that such values are fuzzy. By XML Schema (part 2, 3.2.6.2 and appendix E) a month has no
# fixed length, so that a reader which adds the text to a date lands elsewhere: 31 days become one month and 14 hours, more than two days
# less from 1 February on. Below 730 hours it is right. No error is set, and the round trip in the package itself shows nothing. isodate
# 0.7.2 (PyPI), Python 3.11, adds as the standard says. A time to live for Parley is written in seconds.
#
# Seen:
#   6 days: P6D, in Go 6 days; from 2026-02-01 2026-02-07 00:00, by days 2026-02-07
#   31 days: P1MT14H, in Go 31 days; from 2026-02-01 2026-03-01 14:00, by days 2026-03-04
#   90 days: P2M4W1DT4H, in Go 90 days; from 2026-02-01 2026-04-30 04:00, by days 2026-05-02
#   365 days: P1Y, in Go 365 days; from 2026-02-01 2027-02-01 00:00, by days 2027-02-01
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check isodate==0.7.2
cat > go.mod <<'END'
module example
go 1.24
require github.com/sosodev/duration v1.4.0
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"time"

	"github.com/sosodev/duration"
)

func main() {
	for _, days := range []int{6, 31, 90, 365} {
		text := duration.Format(time.Duration(days) * 24 * time.Hour)
		read, err := duration.Parse(text)
		if err != nil {
			panic(err)
		}
		fmt.Println(days, text, read.ToTimeDuration()/24/time.Hour)
	}
}
END
cat > read.py <<'END'
import sys
from datetime import datetime, timedelta

import isodate

begin = datetime(2026, 2, 1)
for line in sys.stdin:
    days, text, read = line.split()
    end = begin + isodate.parse_duration(text)
    right = begin + timedelta(days=int(days))
    goal = f"{right:%Y-%m-%d}"
    print(f"{days} days: {text}, in Go {read.removesuffix('ns')} days; from {begin:%Y-%m-%d} {end:%Y-%m-%d %H:%M}, by days {goal}")
END
export GOFLAGS=-mod=mod
go run . | venv/bin/python read.py | tee seen
diff seen - <<'END'
6 days: P6D, in Go 6 days; from 2026-02-01 2026-02-07 00:00, by days 2026-02-07
31 days: P1MT14H, in Go 31 days; from 2026-02-01 2026-03-01 14:00, by days 2026-03-04
90 days: P2M4W1DT4H, in Go 90 days; from 2026-02-01 2026-04-30 04:00, by days 2026-05-02
365 days: P1Y, in Go 365 days; from 2026-02-01 2027-02-01 00:00, by days 2027-02-01
END
