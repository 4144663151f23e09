// The shop takes five orders and waits until the warehouse has packed them, with postgres.js.
import postgres from 'postgres'

const sql = postgres(process.env.DATABASE_URL)

for (let i = 0; i < 5; i++) {
  // The order and its message are committed together, or neither is.
  await sql.begin(async sql => {
    const [{ handle }] = await sql`select parley.begin_dialog('shop', 'warehouse') as handle`
    const [{ order_id: order }] = await sql`insert into orders (conversation_handle) values (${handle}) returning order_id`
    await sql`select parley.send(${handle}, 'DEFAULT', ${String(order)})`
  })
}
while ((await sql`select from orders where not is_packed`).length > 0) {
  // Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
  await sql`call parley.wait_for_message('shop_queue', 5000)`
  await sql.begin(async sql => {
    for (const message of await sql`select * from parley.receive('shop_queue')`) {
      const handle = message.conversation_handle
      if (message.message_type_name === 'DEFAULT') {
        await sql`update orders set is_packed = true where conversation_handle = ${handle}`
      }
      await sql`select parley.end_conversation(${handle})`
    }
  })
}
await sql.end()
