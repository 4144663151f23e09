"""Sends one body of each kind, with psycopg and then with asyncpg: which call takes which value."""

import asyncio
import json
import os

import asyncpg
import psycopg
from psycopg.types.json import Jsonb

DSN = os.environ["DATABASE_URL"]

with psycopg.connect(DSN) as connection, connection.transaction():
    handle = connection.execute("select parley.begin_dialog(%s, %s)", ["shop", "warehouse"]).fetchone()[0]

    def send(call, body):
        connection.execute(f"select parley.{call}(%s, %s, %s)", [handle, "DEFAULT", body])

    send("send", "chair")
    send("send_binary", b"\x00\xff")
    send("send_json", Jsonb({"seats": [1, 2]}))
    send("send_json", Jsonb([1, 2]))
    send("send_batch", ["a", "b"])
    send("send_batch_binary", [b"\x00", b"\xff"])
    send("send_batch_json", [Jsonb({"a": 1}), Jsonb([2])])


async def main():
    connection = await asyncpg.connect(DSN)
    async with connection.transaction():
        handle = await connection.fetchval("select parley.begin_dialog($1, $2)", "shop", "warehouse")

        async def send(call, body):
            await connection.execute(f"select parley.{call}($1, $2, $3)", handle, "DEFAULT", body)

        await send("send", "chair")
        await send("send_binary", b"\x00\xff")
        await send("send_json", json.dumps({"seats": [1, 2]}))
        await send("send_json", json.dumps([1, 2]))
        await send("send_batch", ["a", "b"])
        await send("send_batch_binary", [b"\x00", b"\xff"])
        await send("send_batch_json", [json.dumps({"a": 1}), json.dumps([2])])
    await connection.close()


asyncio.run(main())
