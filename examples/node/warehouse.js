// The warehouse packs each order that the shop sends, with node-postgres. It may be stopped, or killed, at any time.
import pg from 'pg'

const endDialog = 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog'
const error = 'http://schemas.microsoft.com/SQL/ServiceBroker/Error'

let isStopped = false
process.on('SIGTERM', () => { isStopped = true })

async function handle(client, message) {
  if (message.message_type_name === endDialog || message.message_type_name === error) {
    await client.query('select parley.end_conversation($1)', [message.conversation_handle])
    return
  }
  await client.query('insert into parcels (order_id) values ($1)', [message.body])
  await client.query('select parley.send($1, $2, $3)', [message.conversation_handle, 'DEFAULT', message.body])
}

// Receives and handles in one transaction: what fails, or is killed, is received again. Gives how many to take next.
async function receive(client, top) {
  let current
  await client.query('begin')
  try {
    const { rows } = await client.query(
      `select conversation_handle, message_type_name, parley.body_text(message_body) as body
       from parley.receive('warehouse_queue', top => $1) order by queuing_order`, [top])
    for (current of rows) await handle(client, current)
    await client.query('commit')
    // Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
    if (rows.length === 0) await client.query("call parley.wait_for_message('warehouse_queue', 5000)")
    return 10
  } catch (failure) {
    await client.query('rollback')
    if (!current) throw failure
    console.error(`${current.conversation_handle}: ${failure.message} (${failure.code})`)
    // In a transaction of its own: a message that keeps failing is set aside, and this says why.
    await client.query('select parley.record_failure($1, $2, $3)', [current.conversation_handle, failure.code, failure.message])
    // One at a time: what stands in front of it is done, and it alone fails the next time.
    return 1
  }
}

while (!isStopped) {
  const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
  // Without a listener the loss of an idle connection would end the process.
  client.on('error', failure => console.error(`connection: ${failure.message}`))
  try {
    await client.connect()
    console.log('reading')
    for (let top = 10; !isStopped;) top = await receive(client, top)
  } catch (failure) {
    console.error(`the database is away: ${failure.message}`)
    await new Promise(resolve => setTimeout(resolve, 1000))
  }
  await client.end().catch(() => {})
}
