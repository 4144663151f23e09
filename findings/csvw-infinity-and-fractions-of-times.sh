#!/usr/bin/env bash
# csvw 4.1.1 (PyPI), Python 3.11, beside xmlschema 4.3.2 (PyPI): the datatypes of a table are those of XML Schema (Metadata Vocabulary for
# Tabular Data, 5.11.1), where infinity and no number of double are INF and NaN (XML Schema 1.1, part 2, 3.3.5.2), and a time may have a
# fraction of a second and a zone (3.3.8). The package reads all of these and writes inf and nan, which are no doubles, and a time without
# its fraction and its zone; of a date it leaves out the zone. It reads its own inf again, so that a test with one side passes. A date
# with a time keeps both. No error is set, and rows that are read and written with nothing changed are refused or moved.
#
# Seen:
#   double: INF as inf, not valid
#   double: NaN as nan, not valid
#   time: 03:04:05.5 as 03:04:05, valid
#   time: 03:04:05+02:00 as 03:04:05, valid
#   date: 2026-01-02+02:00 as 2026-01-02, valid
#   dateTime: 2026-01-02T03:04:05.5+02:00 as 2026-01-02T03:04:05.500000+02:00, valid
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check csvw==4.1.1 xmlschema==4.3.2
cat > read.py <<'END'
import xmlschema
from csvw.metadata import Datatype

types = xmlschema.XMLSchema.builtin_types()
for base, text in (
    ("double", "INF"),
    ("double", "NaN"),
    ("time", "03:04:05.5"),
    ("time", "03:04:05+02:00"),
    ("date", "2026-01-02+02:00"),
    ("dateTime", "2026-01-02T03:04:05.5+02:00"),
):
    datatype = Datatype.fromvalue(base)
    written = datatype.formatted(datatype.parse(text))
    told = "valid" if types[base].is_valid(written) else "not valid"
    print(f"{base}: {text} as {written}, {told}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
double: INF as inf, not valid
double: NaN as nan, not valid
time: 03:04:05.5 as 03:04:05, valid
time: 03:04:05+02:00 as 03:04:05, valid
date: 2026-01-02+02:00 as 2026-01-02, valid
dateTime: 2026-01-02T03:04:05.5+02:00 as 2026-01-02T03:04:05.500000+02:00, valid
END
