// The calls in Node on the page for those who come from other queues, as they stand there.
import assert from 'node:assert/strict'
import {
  Final, RetryAfter, SimpleConsumer, cancel, claim, complete, done, fail, put, putBatch, putGroup, putUnique, renew, retry, take
} from 'parley-broker'
import pg from 'pg'

async function puts (client) {
  const tomorrow = new Date(Date.now() + 24 * 3600 * 1000)
  await put(client, 'jobs', { n: 1 })
  assert((await put(client, 'jobs', 'x', { deliverAt: tomorrow })).delayedId)
  await put(client, 'jobs', 'x', { key: 'user 7', priority: 10 })
  await putBatch(client, 'jobs', ['a', 'b'])
  for (const isDuplicate of [false, true]) {
    assert.equal((await putUnique(client, 'jobs', 'x', 'index')).isDuplicate, isDuplicate)
    assert.equal((await put(client, 'jobs', 'x', { deduplicationKey: 'call 17' })).isDuplicate, isDuplicate)
  }
  const bodies = ['a', 'b']
  assert(await putGroup(client, 'jobs', bodies, 'jobs', 'done'))
}

async function takeSome (client) {
  // Those of one priority come together, the higher ones first.
  for (const bodies of [['x'], ['{"n":1}', 'a']]) {
    await client.query('begin')
    const messages = await take(client, 'jobs', { count: 2 })
    assert.deepEqual(messages.map(message => message.text), bodies)
    for (const { messageId } of messages) assert(await done(client, 'jobs', messageId, { bytes: 7 }))
    await client.query('commit')
  }
}

async function decide (client) {
  const waiting = (await client.query("select message_id from parley.peek_messages('jobs')")).rows.map(row => row.message_id)
  const failure = new Error('no answer')
  let messageId = waiting[0]
  assert((await retry(client, 'jobs', messageId, failure, { delay: 60000 })).retryAt)
  messageId = waiting[1]
  assert(await fail(client, 'jobs', messageId, 'no such picture'))
  messageId = waiting[2]
  assert(await cancel(client, 'jobs', messageId, { running: true }))
}

async function claimOne (client) {
  const claimed = await claim(client, 'jobs', { lease: 30000 })
  assert(await renew(client, claimed, { progress: { done: 7 } }))
  assert(await complete(client, claimed))
}

async function resize (client, messages) {
  const { text } = messages[0]
  await client.query('insert into resized (picture) values ($1)', [text])
  if (text === 'the last one') process.kill(process.pid, 'SIGTERM')
  if (text === 'busy') throw new RetryAfter(60000)
  if (text === 'missing') throw new Final('no such picture')
}

const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
await puts(client)
await takeSome(client)
await decide(client)
await claimOne(client)
await put(client, 'jobs', 'busy')
await put(client, 'jobs', 'missing')
await put(client, 'jobs', 'the last one', { priority: 1 })
await client.end()
await new SimpleConsumer({ queue: 'jobs', handler: resize, readers: 4 }).run()
