#!/usr/bin/env bash
# isoduration 20.11.0 (PyPI), Python 3.11: it reads and writes a duration with a fraction right, as ISO 8601:2004 (4.4.3.2) and for seconds XML Schema (part 2,
# 3.2.6) allow it, and adds it to a time rounded to a whole unit: an hour and a half is two hours, half a second one. What the time itself has
# below a second is gone after any sum. No error is set. isodate 0.7.2 and XML Schema (part 2, appendix E) keep both.
#
# Seen:
#   10:00:00 + PT90M: isoduration 11:30:00, isodate 11:30:00
#   10:00:00 + PT1.5H: isoduration 12:00:00, isodate 11:30:00
#   10:00:00 + PT2.25H: isoduration 12:00:00, isodate 12:15:00
#   10:00:00 + PT0.5S: isoduration 10:00:01, isodate 10:00:00.500000
#   10:00:00.750000 + PT1M: isoduration 10:01:00, isodate 10:01:00.750000
#   PT1.5H written: PT1.5H
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check isoduration==20.11.0 isodate==0.7.2
cat > read.py <<'END'
from datetime import datetime

import isodate
import isoduration

for microsecond, text in ((0, "PT90M"), (0, "PT1.5H"), (0, "PT2.25H"), (0, "PT0.5S"), (750_000, "PT1M")):
    at = datetime(2026, 1, 1, 10, 0, 0, microsecond)
    sums = (at + isoduration.parse_duration(text), at + isodate.parse_duration(text))
    print(f"{at.time()} + {text}: isoduration {sums[0].time()}, isodate {sums[1].time()}")
print("PT1.5H written:", isoduration.format_duration(isoduration.parse_duration("PT1.5H")))
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
10:00:00 + PT90M: isoduration 11:30:00, isodate 11:30:00
10:00:00 + PT1.5H: isoduration 12:00:00, isodate 11:30:00
10:00:00 + PT2.25H: isoduration 12:00:00, isodate 12:15:00
10:00:00 + PT0.5S: isoduration 10:00:01, isodate 10:00:00.500000
10:00:00.750000 + PT1M: isoduration 10:01:00, isodate 10:01:00.750000
PT1.5H written: PT1.5H
END
