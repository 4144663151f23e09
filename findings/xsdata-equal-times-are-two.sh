#!/usr/bin/env bash
# xsdata 26.10 (PyPI), Python 3.11: two texts of XML Schema for the same instant, such as noon in London and one o'clock in Berlin (part 2,
# 3.2.7), are equal values of its type, with different hashes. Python's data model wants one hash for equal objects, so that a set has both
# and a dict finds nothing under the other text. Messages that came twice are not dropped by such a key. A time without a zone is equal to
# the same one in UTC there, where the standard gives no answer (3.2.7.4). No error is set. datetime of Python 3.11 is right in both. A
# consumer of Parley takes to_datetime() as the key.
#
# Seen:
#   2026-01-01T12:00:00Z and 2026-01-01T13:00:00+01:00: xsdata equal, 2 in a set; datetime equal, 1 in a set
#   2026-01-01T12:00:00Z and 2026-01-01T12:00:00.000Z: xsdata equal, 1 in a set; datetime equal, 1 in a set
#   2026-01-01T12:00:00 and 2026-01-01T12:00:00Z: xsdata equal, 2 in a set; datetime not equal, 2 in a set
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check xsdata==26.10
cat > read.py <<'END'
from datetime import datetime

from xsdata.models.datatype import XmlDateTime

PAIRS = (
    ("2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00"),
    ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00.000Z"),
    ("2026-01-01T12:00:00", "2026-01-01T12:00:00Z"),
)


def about(kind, pair):
    first, second = map(kind, pair)
    return f"{'equal' if first == second else 'not equal'}, {len({first, second})} in a set"


for pair in PAIRS:
    print(f"{pair[0]} and {pair[1]}: xsdata {about(XmlDateTime.from_string, pair)}; datetime {about(datetime.fromisoformat, pair)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
2026-01-01T12:00:00Z and 2026-01-01T13:00:00+01:00: xsdata equal, 2 in a set; datetime equal, 1 in a set
2026-01-01T12:00:00Z and 2026-01-01T12:00:00.000Z: xsdata equal, 1 in a set; datetime equal, 1 in a set
2026-01-01T12:00:00 and 2026-01-01T12:00:00Z: xsdata equal, 2 in a set; datetime not equal, 2 in a set
END
