#!/usr/bin/env bash
# aniso8601 10.0.1 (PyPI), Python 3.11: 24:00 is the end of a day (ISO 8601:2004, 4.2.3), the same instant as 00:00 of the next. The package
# gives 00:00 of the same day, 24 hours too early, so that a day from 00:00 to 24:00 lasts no time at all. No error is set, and its
# documentation does not say so. dateutil 2.9.0 and XML Schema (part 2, 3.2.7.1) take it for the next day. Times for Parley that come as
# such text are read by dateutil, or refused where the hour is 24.
#
# Seen:
#   2026-01-31T23:59:59: aniso8601 2026-01-31 23:59:59, dateutil 2026-01-31 23:59:59
#   2026-01-31T24:00:00: aniso8601 2026-01-31 00:00:00, dateutil 2026-02-01 00:00:00
#   20260131T24: aniso8601 2026-01-31 00:00:00, dateutil 2026-02-01 00:00:00
#   2026-01-31T00:00/2026-01-31T24:00: 0:00:00
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check aniso8601==10.0.1 python-dateutil==2.9.0.post0
cat > read.py <<'END'
import aniso8601
from dateutil import parser

for text in ("2026-01-31T23:59:59", "2026-01-31T24:00:00", "20260131T24"):
    print(f"{text}: aniso8601 {aniso8601.parse_datetime(text)}, dateutil {parser.isoparse(text)}")
begin, end = aniso8601.parse_interval("2026-01-31T00:00/2026-01-31T24:00")
print(f"2026-01-31T00:00/2026-01-31T24:00: {end - begin}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
2026-01-31T23:59:59: aniso8601 2026-01-31 23:59:59, dateutil 2026-01-31 23:59:59
2026-01-31T24:00:00: aniso8601 2026-01-31 00:00:00, dateutil 2026-02-01 00:00:00
20260131T24: aniso8601 2026-01-31 00:00:00, dateutil 2026-02-01 00:00:00
2026-01-31T00:00/2026-01-31T24:00: 0:00:00
END
