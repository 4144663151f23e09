// Each call against a real server, and each error as the class of its number.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import * as parley from 'parley-broker'
import { database, patience } from './database.js'

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const db = database()
const inAnHour = () => new Date(Date.now() + 3600000)

test('a message of a simple queue arrives as it was put', async () => {
  const queue = await db.queue('arrives')
  for (const body of ['chair', Buffer.from([0, 255]), { seats: [1, 2] }, [1, 2], null]) {
    assert.ok((await parley.put(db.client, queue, body)).messageId)
  }
  await parley.putBatch(db.client, queue, ['a', Buffer.from([0])], { key: 'k', traceContext: trace })
  const taken = await parley.take(db.client, queue, { count: 10 })
  assert.equal(taken[0].text, 'chair')
  assert.deepEqual(taken[1].body, Buffer.from([0, 255]))
  assert.deepEqual(taken.slice(2, 5).map(message => message.json()), [{ seats: [1, 2] }, [1, 2], null])
  assert.deepEqual(taken.slice(5).map(message => [message.body.toString('hex'), message.key, message.traceContext]),
    [['61', 'k', trace], ['00', 'k', trace]])
  assert.equal(taken[0].attempt, 1)
  assert.ok(taken[0].enqueuedAt instanceof Date)
  await assert.rejects(parley.putBatch(db.client, queue, 'abc'), /an array of bodies/)
})

test('puts say what came of them', async () => {
  const queue = await db.queue('outcomes')
  const sent = await parley.putEach(db.client, queue, ['a', { b: 1 }], { deduplicationKeys: ['one', null] })
  assert.deepEqual(sent.map(message => message.isDuplicate), [false, false])
  assert.equal((await parley.put(db.client, queue, 'a', { deduplicationKey: 'one' })).messageId, sent[0].messageId)
  assert.equal((await parley.putUnique(db.client, queue, 'c', 'only')).isDuplicate, false)
  assert.equal((await parley.putUnique(db.client, queue, 'c', 'only')).isDuplicate, true)
  assert.ok(await parley.putGroup(db.client, queue, ['g'], queue, 'after g', { keys: ['k'] }) > 0)
  assert.ok((await parley.put(db.client, queue, 'd', { deliverAt: inAnHour() })).delayedId)
  assert.equal(await parley.cancel(db.client, queue, sent[0].messageId), true)
  assert.equal(await parley.cancel(db.client, queue, sent[0].messageId), false)
})

test('what failed waits or is set aside', async () => {
  const queue = await db.queue('failures')
  await parley.putBatch(db.client, queue, ['waits', 'never'])
  await db.client.query('begin; savepoint work')
  const [first, second] = await parley.take(db.client, queue, { count: 2 })
  await db.client.query('rollback to work')
  const retried = await parley.retry(db.client, queue, first.messageId, new Error('busy'), { delay: 3600000 })
  assert.ok(retried.retryAt > new Date() && retried.isSetAside === false)
  assert.equal(await parley.fail(db.client, queue, second.messageId, 'no such picture'), true)
  await db.client.query('commit')
  assert.equal(await db.value("select error from parley.failing_messages where queue_name = 'failures'"), 'busy')
  assert.equal(await db.value("select error from parley.set_aside_messages where queue_name = 'failures'"), 'no such picture')
})

test('a failure has the text of its causes', async () => {
  const queue = await db.queue('causes')
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:9')
  const failures = [
    [new TypeError('fetch failed', { cause: refused }), 'fetch failed: connect ECONNREFUSED 127.0.0.1:9'],
    [new TypeError('fetch failed', { cause: new AggregateError([refused, new Error('and ::1')]) }),
      'fetch failed: connect ECONNREFUSED 127.0.0.1:9, and ::1'],
    [new parley.Final(refused.message, { cause: refused }), refused.message],
    [new Error('', { cause: 'a text' }), 'a text'],
    [new RangeError(''), 'RangeError'],
    [Object.assign(new Error('circles'), { cause: null }), 'circles']
  ]
  const circle = failures.at(-1)[0]
  circle.cause = circle
  for (const [failure, text] of failures) {
    await parley.put(db.client, queue, text)
    await db.client.query('begin; savepoint work')
    const [message] = await parley.take(db.client, queue)
    await db.client.query('rollback to work')
    await parley.fail(db.client, queue, message.messageId, failure)
    await db.client.query('commit')
  }
  const { rows } = await db.client.query("select error from parley.set_aside_messages where queue_name = 'causes' order by message_id")
  assert.deepEqual(rows.map(row => row.error), failures.map(([, text]) => text))
})

test('long work is claimed, renewed and completed', async () => {
  const queue = await db.queue('claims')
  await parley.putBatch(db.client, queue, ['long', 'lost'])
  const claimed = await parley.claim(db.client, queue, { lease: 30000 })
  assert.deepEqual(claimed.messages.map(message => message.text), ['long'])
  assert.equal(await parley.renew(db.client, claimed, { progress: { pages: 3 } }), true)
  assert.equal(await parley.complete(db.client, claimed, { pages: 9 }), true)
  assert.equal(await parley.complete(db.client, claimed), false)
  const other = await parley.claim(db.client, queue)
  assert.equal((await parley.giveBack(db.client, other, 'out of memory', { delay: 3600000 })).isSetAside, false)
  assert.equal(await parley.claim(db.client, queue), null)
  assert.deepEqual(await db.value("select result from parley.finished_messages where queue_name = 'claims'"), { pages: 9 })
})

test('a conversation from its begin to its end', async () => {
  const { client } = db
  const handle = await parley.beginDialog(client, 'shop', 'warehouse', { lifetime: 60 })
  await parley.send(client, handle, { chairs: 4 }, { traceContext: trace })
  await parley.sendBatch(client, handle, ['second', 'third'])
  assert.equal((await parley.send(client, handle, 'once', { deduplicationKey: 'k' })).isDuplicate, false)
  assert.equal((await parley.send(client, handle, 'once', { deduplicationKey: 'k' })).isDuplicate, true)
  const messages = await parley.receive(client, 'warehouse_queue')
  assert.deepEqual(messages[0].json(), { chairs: 4 })
  assert.equal(messages[0].traceContext, trace)
  assert.deepEqual(messages.slice(1).map(message => message.text), ['second', 'third', 'once'])
  await parley.reply(client, messages[0], 'packed')
  const answers = await parley.receive(client, 'shop_queue')
  assert.equal(answers[0].text, 'packed')
  assert.ok(answers[1].isEndDialog)
  await parley.endConversation(client, handle)
  await parley.sendAndEnd(client, 'shop', 'warehouse', 'no answer')
  const begun = await parley.beginAndSend(client, 'shop', 'warehouse', 'refused')
  assert.equal((await parley.receive(client, 'warehouse_queue'))[0].text, 'no answer')
  const [refused] = await parley.receive(client, 'warehouse_queue', { top: 1 })
  await parley.endConversation(client, refused.conversationHandle, { errorCode: 7, description: 'sold <out> & gone' })
  const failure = (await parley.receiveReply(client, begun)).error()
  assert.deepEqual([failure.errorCode, failure.description], [7, 'sold <out> & gone'])
})

test('a request gets its reply or says why not', async () => {
  const target = new pg.Client({ connectionString: db.dsn })
  await target.connect()
  const answering = (async () => {
    for (let n = 0; n < 2; n++) {
      await target.query('begin')
      const [message] = await parley.receive(target, 'warehouse_queue', { top: 1, timeout: patience })
      if (message.text === 'refuse') {
        await parley.endConversation(target, message.conversationHandle, { errorCode: 3, description: 'no' })
      } else await parley.reply(target, message, message.text.toUpperCase())
      await target.query('commit')
    }
  })()
  try {
    assert.equal((await parley.request(db.client, 'shop', 'warehouse', 'chair', { timeout: patience })).text, 'CHAIR')
    await assert.rejects(parley.request(db.client, 'shop', 'warehouse', 'refuse', { timeout: patience }), /error 3: no/)
    await answering
    await assert.rejects(parley.request(db.client, 'shop', 'warehouse', 'nobody', { timeout: 50 }), /Give it more time/)
    const received = await parley.receive(db.client, 'warehouse_queue')
    assert.equal(received.at(-1).error().errorCode, 408)
  } finally {
    await target.end()
  }
})

test('each error is the class of its number', async () => {
  const refusal = await parley.put(db.client, 'job', 'a').catch(error => error)
  assert.ok(refusal instanceof parley.QueueNotFound && refusal instanceof parley.ParleyError)
  assert.deepEqual([refusal.number, refusal.code, refusal.name], [208, 'SB05S', 'QueueNotFound'])
  assert.ok(refusal.hint.includes('parley.service_queues') && refusal.message.includes(refusal.hint))
  await assert.rejects(parley.take(db.client, 'shop_queue'), parley.WrongArgument)
  await assert.rejects(parley.beginDialog(db.client, 'nobody', 'warehouse'), { number: 8423 })
  await assert.rejects(parley.endConversation(db.client, '00000000-0000-0000-0000-000000000001'), parley.ConversationNotFound)
  const queue = await db.queue('disabled')
  await db.client.query("select parley.alter_queue('disabled', status => false)")
  await assert.rejects(parley.take(db.client, queue), parley.QueueDisabled)
  const elsewhere = new pg.Client({ connectionString: Object.assign(new URL(db.dsn), { pathname: '/template1' }).href })
  await elsewhere.connect()
  await assert.rejects(parley.put(elsewhere, 'jobs', 'a'), parley.NoBroker)
  await elsewhere.end()
})
