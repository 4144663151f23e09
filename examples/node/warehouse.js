// The warehouse packs each order that the shop sends, with the package parley-broker. It may be stopped, or killed, at any time.
import { Consumer, send } from 'parley-broker'

async function pack (client, messages) {
  for (const order of messages) {
    await client.query('insert into parcels (order_id) values ($1)', [order.text])
    await send(client, order.conversationHandle, order.text)
  }
}

await new Consumer({ queue: 'warehouse_queue', handler: pack, top: 10 }).run()
