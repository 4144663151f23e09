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
        connection.execute(f"select parley.{call}", [handle, "DEFAULT", body])

    send("send(%s, %s, %s)", "chair")
    send("send(%s, %s, %s)", b"\x00\xff")
    send("send(%s, %s, %s)", Jsonb({"seats": [1, 2]}))
    send("send(%s, %s, %s)", Jsonb([1, 2]))
    send("send_batch(%s, %s, %s)", ["a", "b"])
    send("send_batch_binary(%s, %s, %s)", [b"\x00", b"\xff"])
    send("send_batch(%s, %s, %s)", [json.dumps({"a": 1}), json.dumps([2])])


async def main():
    connection = await asyncpg.connect(DSN)
    async with connection.transaction():
        handle = await connection.fetchval("select parley.begin_dialog($1, $2)", "shop", "warehouse")

        async def send(call, body):
            await connection.execute(f"select parley.{call}", handle, "DEFAULT", body)

        await send("send($1, $2, $3)", "chair")
        await send("send($1, $2, $3::bytea)", b"\x00\xff")
        await send("send($1, $2, $3::jsonb)", json.dumps({"seats": [1, 2]}))
        await send("send($1, $2, $3::jsonb)", json.dumps([1, 2]))
        await send("send_batch($1, $2, $3)", ["a", "b"])
        await send("send_batch_binary($1, $2, $3)", [b"\x00", b"\xff"])
        await send("send_batch($1, $2, $3)", [json.dumps({"a": 1}), json.dumps([2])])
    await connection.close()


asyncio.run(main())
