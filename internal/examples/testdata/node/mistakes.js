// What node-postgres and then postgres.js send without an error, and not as it was meant.
import pg from 'pg'
import postgres from 'postgres'

const bytes = [Buffer.from([0x61, 0x62]), Buffer.from([0x00, 0xff])]

const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
const { rows: [{ handle }] } = await client.query(`select parley.begin_dialog('shop', 'warehouse') as handle`)
for (const [call, body] of [
  ['send($1, $2, $3)', [1, 2]],
  ['send($1, $2, $3)', bytes],
  ['send($1, $2, $3::jsonb)', []],
  ['send_batch($1, $2, $3)', bytes],
  ['send($1, $2, $3::bytea)', '\\x6162'],
]) await client.query(`select parley.${call}`, [handle, 'DEFAULT', body])
await client.end()

const sql = postgres(process.env.DATABASE_URL)
const [{ second }] = await sql`select parley.begin_dialog('shop', 'warehouse') as second`
await sql`select parley.send(${second}, 'DEFAULT', ${{ a: 1 }})`
await sql`select parley.send(${second}, 'DEFAULT', ${[1, 2]})`
await sql`select parley.send(${second}, 'DEFAULT', ${bytes})`
await sql`select parley.send(${second}, 'DEFAULT', ${bytes}::bytea)`
await sql`select parley.send(${second}, 'DEFAULT', ${JSON.stringify({ a: 1 })}::jsonb)`
await sql`select parley.send_batch(${second}, 'DEFAULT', ${[{ a: 1 }]})`
await sql.end()
