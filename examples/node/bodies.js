// Sends one body of each kind, with node-postgres and then with postgres.js: which call takes which value.
import pg from 'pg'
import postgres from 'postgres'

const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
await client.query('begin')
const { rows: [{ handle }] } = await client.query(`select parley.begin_dialog('shop', 'warehouse') as handle`)
const send = (call, body) => client.query(`select parley.${call}`, [handle, 'DEFAULT', body])
await send('send($1, $2, $3)', 'chair')
await send('send($1, $2, $3::bytea)', Buffer.from([0x00, 0xff]))
// As text: of an array this driver makes an array of PostgreSQL, not JSON.
await send('send($1, $2, $3::jsonb)', JSON.stringify({ seats: [1, 2] }))
await send('send($1, $2, $3::jsonb)', JSON.stringify([1, 2]))
await send('send_batch($1, $2, $3)', ['a', 'b'])
await send('send_batch_binary($1, $2, $3)', [Buffer.from([0x00]), Buffer.from([0xff])])
await send('send_batch($1, $2, $3)', [{ a: 1 }, [2]].map(body => JSON.stringify(body)))
await client.query('commit')
await client.end()

const sql = postgres(process.env.DATABASE_URL)
await sql.begin(async sql => {
  const [{ handle }] = await sql`select parley.begin_dialog('shop', 'warehouse') as handle`
  await sql`select parley.send(${handle}, 'DEFAULT', 'chair')`
  await sql`select parley.send(${handle}, 'DEFAULT', ${Buffer.from([0x00, 0xff])}::bytea)`
  // As it is: this driver makes JSON of what goes to jsonb, of a string too.
  await sql`select parley.send(${handle}, 'DEFAULT', ${{ seats: [1, 2] }}::jsonb)`
  await sql`select parley.send(${handle}, 'DEFAULT', ${[1, 2]}::jsonb)`
  await sql`select parley.send_batch(${handle}, 'DEFAULT', ${['a', 'b']})`
  await sql`select parley.send_batch_binary(${handle}, 'DEFAULT', ${sql.array([Buffer.from([0x00]), Buffer.from([0xff])], 1001)})`
  await sql`select parley.send_batch(${handle}, 'DEFAULT', ${[{ a: 1 }, [2]].map(body => JSON.stringify(body))})`
})
await sql.end()
