#!/usr/bin/env bash
# nats-py 2.16.0 (PyPI, the project's own client), Python 3.11: a header key of NATS may repeat (ADR-4), and the clients for Go, Java and JavaScript send and
# give lists. The Python client keeps the last value of each key in a dict, and no error is set. Here a small server on loopback sends a message
# as any client may have published it: of three receivers that a message names, two are gone.
#
# Seen:
#   {'Receiver': 'archive', 'Trace': '7'}
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check nats-py==2.16.0
cat > read.py <<'END'
import asyncio

import nats

HEADERS = b"NATS/1.0\r\nReceiver: billing\r\nReceiver: stock\r\nReceiver: archive\r\nTrace: 7\r\n\r\n"


async def serve(reader, writer):
    writer.write(b'INFO {"server_id":"a","version":"2.10.0","headers":true,"max_payload":1024}\r\n')
    async for line in reader:
        if line.startswith(b"PING"):
            writer.write(b"PONG\r\n")
        elif line.startswith(b"SUB"):
            number, size = line.split()[-1], len(HEADERS)
            writer.write(b"HMSG orders %s %d %d\r\n%sbody\r\n" % (number, size, size + len(b"body"), HEADERS))
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = await nats.connect(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    subscription = await client.subscribe("orders")
    print((await subscription.next_msg(timeout=60)).headers)
    await client.close()
    server.close()


asyncio.run(main())
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
{'Receiver': 'archive', 'Trace': '7'}
END
