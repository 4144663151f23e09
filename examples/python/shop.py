"""The shop takes five orders and waits until the warehouse has packed them, with asyncpg."""

import asyncio
import os

import asyncpg


async def place(connection):
    # The order and its message are committed together, or neither is.
    async with connection.transaction():
        handle = await connection.fetchval("select parley.begin_dialog($1, $2)", "shop", "warehouse")
        order = await connection.fetchval("insert into orders (conversation_handle) values ($1) returning order_id", handle)
        await connection.execute("select parley.send($1, $2, $3)", handle, "DEFAULT", str(order))


async def collect(connection):
    # Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
    await connection.execute("call parley.wait_for_message($1, $2)", "shop_queue", 5000)
    async with connection.transaction():
        messages = await connection.fetch("select * from parley.receive($1)", "shop_queue")
        for message in messages:
            handle = message["conversation_handle"]
            if message["message_type_name"] == "DEFAULT":
                await connection.execute("update orders set is_packed = true where conversation_handle = $1", handle)
            await connection.execute("select parley.end_conversation($1)", handle)


async def main():
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    for _ in range(5):
        await place(connection)
    while await connection.fetchval("select exists (select from orders where not is_packed)"):
        await collect(connection)
    await connection.close()


asyncio.run(main())
