"""Works on jobs of awa and writes a line for each: its number. Ends with its standard input. With the argument "install" it installs the
schema and ends."""

import asyncio
import os
import sys
from dataclasses import dataclass
from urllib.parse import quote

import awa

PATIENCE_S = 60


@dataclass
class Job:
    number: int
    padding: str


def address() -> str:
    user, password, host = (quote(os.environ.get(n, ""), safe="") for n in ("PGUSER", "PGPASSWORD", "PGHOST"))
    return f"postgres://{user}:{password}@{host}:{os.environ['PGPORT']}/{quote(os.environ['PGDATABASE'], safe='')}"


async def work_on(job: awa.Job) -> None:
    print(job.args.number, flush=True)


async def storage_is_final(client: awa.AsyncClient) -> bool:
    transaction = await client.transaction()
    try:
        row = await transaction.fetch_one("select awa.active_queue_storage_schema() is not null as is_final")
    finally:
        await transaction.rollback()
    return row["is_final"]


async def main(is_installing: bool) -> None:
    client = awa.AsyncClient(address(), max_connections=int(os.environ.get("PEER_CONNECTIONS", "5")))
    client.task(Job, queue="jobs")(work_on)
    if is_installing:
        await client.migrate()
    # The first worker of an empty database chooses the way in which jobs are stored.
    await client.start([("jobs", int(os.environ.get("PEER_WORKERS", "1")))])
    if is_installing:
        async with asyncio.timeout(PATIENCE_S):
            while not await storage_is_final(client):
                await asyncio.sleep(0.1)
    else:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
    await client.shutdown()


asyncio.run(main(sys.argv[1:] == ["install"]))
