// One transaction of a client: what was done is committed, or nothing of it is.
import { translate } from './errors.js'

/** Does work in a transaction, and commits. The client must be in none. */
export async function transaction (client, work) {
  await client.query('begin isolation level read committed')
  let result
  try {
    result = await work()
    const { command } = await client.query('commit')
    if (command === 'ROLLBACK') throw new Error('a statement of the handler has failed, though the handler threw nothing')
  } catch (error) {
    // A connection that is lost has rolled back by itself.
    await client.query('rollback').catch(() => {})
    throw translate(error)
  }
  return result
}
