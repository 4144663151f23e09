#!/usr/bin/env bash
# pure-protobuf 3.1.5 (PyPI), Python 3.11: a field that holds a message may come in several pieces, which the reader has to merge (Protocol
# Buffers, Encoding, Last One Wins). Writers that join two encoded messages, as that page allows, send such. The package keeps the last
# piece alone, so that what the first one held has its default. Repeated fields of the same message come whole. No error is set. protobufjs
# 8.8.1 (npm), Node 20, merges. A message for Parley is encoded whole by one writer.
#
# Seen:
#   pure-protobuf: name '', city 'York', lines [7, 8]
#   protobufjs: name 'Kim', city 'York', lines [7, 8]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pure-protobuf==3.1.5
npm install --silent --no-fund --no-audit --ignore-scripts protobufjs@8.8.1
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const { root } = createRequire(import.meta.url)('protobufjs').parse(`syntax = "proto3";
  message Party { string name = 1; string city = 2; }
  message Order { Party buyer = 1; repeated int32 lines = 2; }`)
const order = root.lookupType('Order').decode(Buffer.from(process.argv[2], 'hex'))
console.log(`protobufjs: name '${order.buyer.name}', city '${order.buyer.city}', lines [${order.lines.join(', ')}]`)
END
cat > read.py <<'END'
import subprocess
from dataclasses import dataclass, field
from io import BytesIO
from typing import Annotated

from pure_protobuf.annotations import Field
from pure_protobuf.message import BaseMessage


@dataclass
class Party(BaseMessage):
    name: Annotated[str, Field(1)] = ""
    city: Annotated[str, Field(2)] = ""


@dataclass
class Order(BaseMessage):
    buyer: Annotated[Party, Field(1)] = field(default_factory=Party)
    lines: Annotated[list[int], Field(2)] = field(default_factory=list)


octets = bytes.fromhex("0a050a034b696d" "120107" "0a061204596f726b" "120108")
order = Order.read_from(BytesIO(octets))
print(f"pure-protobuf: name {order.buyer.name!r}, city {order.buyer.city!r}, lines {order.lines}")
print(subprocess.run(["node", "read.mjs", octets.hex()], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
pure-protobuf: name '', city 'York', lines [7, 8]
protobufjs: name 'Kim', city 'York', lines [7, 8]
END
