#!/usr/bin/env bash
# betterproto 1.2.5 (PyPI), Python 3.11, beside protobuf 7.36.2 (PyPI): a Timestamp in JSON is in UTC with Z at its end (Protocol Buffers,
# ProtoJSON, Timestamp). The package writes the clock of the zone that the time has, and Z behind it, so that the same message is two hours
# off as JSON and right as octets. In octets a Duration has seconds and nanoseconds of one sign, and the nanoseconds of a Timestamp count
# forward from its seconds (comments of duration.proto and timestamp.proto). It writes minus 1.5 seconds as minus one second and plus half a
# second, which is minus half a second to its own reader, and half a second before 1970 as half a second after. No error is set. Times in
# UTC after 1970 and durations above zero come right.
#
# Seen:
#   2026-07-01T09:00:00+02:00 as JSON: betterproto 2026-07-01T09:00:00Z, protobuf 2026-07-01T07:00:00Z
#   2026-07-01T09:00:00+02:00 as octets: 2026-07-01T07:00:00Z to betterproto, 2026-07-01T07:00:00Z to protobuf
#   1969-12-31T23:59:59.500000+00:00 as octets: 1970-01-01T00:00:00.500Z to betterproto, 1970-01-01T00:00:00.500Z to protobuf
#   -1.5 s as octets: -0.5 s to betterproto, seconds -1 and nanoseconds 500000000 to protobuf
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check betterproto==1.2.5 protobuf==7.36.2
cat > read.py <<'END'
import json
from dataclasses import dataclass
from datetime import datetime, timedelta

import betterproto
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


@dataclass
class Work(betterproto.Message):
    due: datetime = betterproto.message_field(1)
    delay: timedelta = betterproto.message_field(2)


def inner(octets):
    """The one message that a Work of one field holds: a tag and a length stand before it."""
    return octets[2:]


for text in ("2026-07-01T09:00:00+02:00", "1969-12-31T23:59:59.500000+00:00"):
    due = datetime.fromisoformat(text)
    work = Work(due=due)
    right = Timestamp()
    if due.utcoffset():
        right.FromDatetime(due)
        print(f"{text} as JSON: betterproto {json.loads(work.to_json())['due']}, protobuf {right.ToJsonString()}")
    own = json.loads(Work().parse(bytes(work)).to_json())["due"]
    right.ParseFromString(inner(bytes(work)))
    print(f"{text} as octets: {own} to betterproto, {right.ToJsonString()} to protobuf")
work = Work(delay=timedelta(seconds=-1.5))
own = Work().parse(bytes(work)).delay.total_seconds()
right = Duration.FromString(inner(bytes(work)))
print(f"-1.5 s as octets: {own} s to betterproto, seconds {right.seconds} and nanoseconds {right.nanos} to protobuf")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
2026-07-01T09:00:00+02:00 as JSON: betterproto 2026-07-01T09:00:00Z, protobuf 2026-07-01T07:00:00Z
2026-07-01T09:00:00+02:00 as octets: 2026-07-01T07:00:00Z to betterproto, 2026-07-01T07:00:00Z to protobuf
1969-12-31T23:59:59.500000+00:00 as octets: 1970-01-01T00:00:00.500Z to betterproto, 1970-01-01T00:00:00.500Z to protobuf
-1.5 s as octets: -0.5 s to betterproto, seconds -1 and nanoseconds 500000000 to protobuf
END
