"""Works on jobs of procrastinate and writes a line for each: its number. Ends with its standard input. With the argument "install" it
installs the schema and ends."""

import asyncio
import contextlib
import os
import sys

import procrastinate

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(
        min_size=1, max_size=int(os.environ.get("PEER_CONNECTIONS", "2"))
    )
)


@app.task(queue="jobs", name="job")
async def job(number: int, padding: str) -> None:
    print(number, flush=True)


async def install() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def work() -> None:
    async with app.open_async():
        worker = asyncio.create_task(
            app.run_worker_async(
                queues=["jobs"],
                concurrency=int(os.environ["PEER_WORKERS"]),
                install_signal_handlers=False,
            )
        )
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker


asyncio.run(install() if sys.argv[1:] == ["install"] else work())
