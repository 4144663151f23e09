#!/usr/bin/env bash
# uuid7 0.1.0 (PyPI), Python 3.11, beside uuid-utils 1.2.0 (PyPI): the package writes the layout of an early draft under version 7. RFC 9562 (5.7) puts the
# milliseconds since 1970 into the first 48 bits. Read so, its identifiers lie more than 170 years ahead. Messages whose identifiers come from it
# and from any other library are sorted by library, not by time, and one that expires by its identifier never does.
#
# Seen:
#   uuid7: version 7, by RFC 9562 more than 170 years ahead
#   uuid-utils: version 7, by RFC 9562 now
#   the example of RFC 9562, of 2022, in uuid7's reader: 1982
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check uuid7==0.1.0 uuid-utils==1.2.0
cat > read.py <<'END'
import time
import uuid

import uuid_extensions
import uuid_utils

YEAR = 365.2425 * 86400
for name, made in (("uuid7", uuid_extensions.uuid7()), ("uuid-utils", uuid.UUID(str(uuid_utils.uuid7())))):
    years = ((made.int >> 80) / 1000 - time.time()) / YEAR
    told = "now" if abs(years) < 0.01 else f"{'more' if years > 170 else 'less'} than 170 years ahead"
    print(f"{name}: version {made.version}, by RFC 9562 {told}")
example = uuid.UUID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
print(f"the example of RFC 9562, of 2022, in uuid7's reader: {uuid_extensions.uuid_to_datetime(example).year}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
uuid7: version 7, by RFC 9562 more than 170 years ahead
uuid-utils: version 7, by RFC 9562 now
the example of RFC 9562, of 2022, in uuid7's reader: 1982
END
