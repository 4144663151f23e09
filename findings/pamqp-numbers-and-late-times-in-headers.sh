#!/usr/bin/env bash
# pamqp 4.0.1 (PyPI, what aio-pika writes frames with), Python 3.11: a float of Python has 64 bits, for which AMQP 0-9-1 has a type (4.2.1,
# d). pamqp writes it in 32 bits (f), so that about seven digits are left. A time is a number of seconds in 64 bits (4.2.5.4); one behind
# the year 2106 is read as milliseconds, so that 9999-12-31, which stands for never, lies in 1978. No error is set. amqp 5.4.2, that of
# Celery, reads the same octets: the numbers are changed in the frame, the times are right there. A sender that hands messages of Parley to
# such consumers writes amounts and times in headers as text.
#
# Seen:
#   1234567.89: pamqp 1234567.875, amqp 1234567.875
#   16777217.0: pamqp 16777216.0, amqp 16777216.0
#   2106-01-01: pamqp 2106-01-01, amqp 2106-01-01
#   2107-01-01: pamqp 1970-02-20, amqp 2107-01-01
#   9999-12-31: pamqp 1978-01-11, amqp 9999-12-31
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pamqp==4.0.1 amqp==5.4.2
cat > read.py <<'END'
from datetime import datetime, timezone

from amqp.serialization import loads
from pamqp import decode, encode


def text(value):
    return value.date().isoformat() if isinstance(value, datetime) else str(value)


times = [datetime(*day, tzinfo=timezone.utc) for day in ((2106, 1, 1), (2107, 1, 1), (9999, 12, 31))]
for value in [1234567.89, 16777217.0, *times]:
    octets = encode.field_table({"x": value})
    _, first = decode.field_table(octets)
    (second,), _ = loads("F", octets, 0)
    print(f"{text(value)}: pamqp {text(first['x'])}, amqp {text(second['x'])}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
1234567.89: pamqp 1234567.875, amqp 1234567.875
16777217.0: pamqp 16777216.0, amqp 16777216.0
2106-01-01: pamqp 2106-01-01, amqp 2106-01-01
2107-01-01: pamqp 1970-02-20, amqp 2107-01-01
9999-12-31: pamqp 1978-01-11, amqp 9999-12-31
END
