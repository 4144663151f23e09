// What workers promise.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as parley from 'parley-broker'
import { database, patience } from './database.js'

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const silent = { info () {}, warn () {}, error () {} }
const db = database()

/** Runs a worker until what is to happen has happened. */
async function working (Kind, settings, happens) {
  const worker = new Kind({ connectionString: db.dsn, logger: silent, pollInterval: 100, ...settings })
  const running = worker.run()
  running.catch(() => {})
  try {
    await happens(worker)
  } finally {
    worker.stop()
  }
  await running
}

const write = queue => async (client, messages) => {
  for (const message of messages) await client.query('insert into done values ($1)', [`${queue} ${message.text}`])
}
const doneIn = queue => `select count(*) from done where job like '${queue} %'`
const asideIn = queue => `select count(*) from parley.set_aside_messages where queue_name = '${queue}'`

test('a worker wakes for each message and observes it', async () => {
  const queue = await db.queue('wakes')
  const turns = []
  await working(parley.SimpleConsumer, { queue, handler: write(queue), readers: 2, pollInterval: 3600000, observer: turn => turns.push(turn) }, async () => {
    // Whoever puts from then on notifies.
    await db.until("select parley._p_is_listening(object_id) from parley.service_queues where name = 'wakes'", true)
    for (let n = 1; n <= 3; n++) {
      await parley.put(db.client, queue, `job ${n}`)
      await db.until(doneIn(queue), n)
    }
  })
  assert.deepEqual(turns.map(turn => [turn.queue, turn.messages, turn.error]), Array(3).fill([queue, 1, null]))
})

test('a failure waits by the policy and a bad message is set aside alone', async () => {
  const queue = await db.queue('fails')
  await parley.putBatch(db.client, queue, ['a', 'bad', 'b', 'final'])
  const handler = async (client, messages) => {
    if (messages.some(message => message.text === 'bad')) throw new Error('no such picture')
    if (messages.some(message => message.text === 'final')) throw new parley.Final('never')
    await write(queue)(client, messages)
  }
  await working(parley.SimpleConsumer, { queue, handler, count: 10 }, async () => {
    await db.until(doneIn(queue), 2)
    await db.until(asideIn(queue), 2)
  })
  const { rows } = await db.client.query("select error from parley.set_aside_messages where queue_name = 'fails' order by error")
  assert.deepEqual(rows.map(row => row.error), ['never', 'no such picture'])
})

test('a worker logs what came of a failure', async () => {
  const queue = await db.queue('logs')
  await parley.putBatch(db.client, queue, ['later', 'final'])
  const lines = []
  const logger = { ...silent, warn: line => lines.push(line) }
  const handler = (client, [message]) => {
    throw message.text === 'final' ? new parley.Final('never') : new parley.RetryAfter(3600000, 'busy')
  }
  await working(parley.SimpleConsumer, { queue, handler, logger }, async () => {
    await db.until("select count(*) from parley.failing_messages where queue_name = 'logs' and retry_at is not null", 1)
    await db.until(asideIn(queue), 1)
  })
  assert.match(lines[0], /^queue logs: the handler failed with messages \d+ \(waiting until \d{4}-.*Z\):$/)
  assert.match(lines[1], /^queue logs: the handler failed with messages \d+ \(set aside\):$/)
})

test('a worker says once what the broker refuses', async () => {
  const lines = []
  const logger = { ...silent, error: line => lines.push(line) }
  await working(parley.SimpleConsumer, { queue: 'not made', handler: () => {}, logger }, async () => {
    for (const end = Date.now() + patience; lines.length === 0 && Date.now() < end;) await new Promise(resolve => setTimeout(resolve, 10))
  })
  assert.equal(lines[0].split('(error 208)').length, 2, lines[0])
})

test('a statement that failed unnoticed is a failure', async () => {
  const queue = await db.queue('unnoticed')
  await parley.put(db.client, queue, 'a')
  const handler = client => client.query('select 1 / 0').catch(() => {})
  await working(parley.SimpleConsumer, { queue, handler }, () => db.until(asideIn(queue), 1))
})

test('a conversation is handled, answered and ended', async () => {
  const handles = [await parley.beginDialog(db.client, 'shop', 'warehouse'), await parley.beginDialog(db.client, 'shop', 'warehouse')]
  await parley.sendBatch(db.client, handles[0], ['1', '2', 'bad', '3'])
  await parley.send(db.client, handles[1], '4')
  const handler = async (client, messages) => {
    for (const message of messages) {
      if (message.text === 'bad') throw new Error('cannot be packed')
      await write('packs')(client, [message])
      await parley.send(client, message.conversationHandle, 'packed ' + message.text)
    }
  }
  await working(parley.Consumer, { queue: 'warehouse_queue', handler }, async () => {
    await db.until(doneIn('packs'), 3)
    await db.until('select count(*) from parley.poison_conversations', 1)
    await parley.endConversation(db.client, handles[1])
    await db.until(`select count(*) from parley.conversation_endpoints where state = 'CD' and service_id =
      (select service_id from parley.services where name = 'warehouse')`, 1)
  })
  assert.equal(await db.value('select error from parley.poison_conversations'), 'cannot be packed')
})

test('long work is held by a heartbeat and cancelled', async () => {
  const queue = await db.queue('long')
  // A machine may be so slow that a heartbeat comes too late: then the message comes again.
  await db.client.query("select parley.alter_queue('long', retry => $1)", [{ first: '10 ms', attempts: 1000 }])
  let isCancelled = null
  const handler = async work => {
    const { text } = work.messages[0]
    if (text === 'cancelled') {
      isCancelled = false
      for (const end = Date.now() + patience; !work.isLost && Date.now() < end;) await new Promise(resolve => setTimeout(resolve, 10))
      isCancelled = work.isLost
      work.progress({ step: 2 }) // throws
    } else if (text === 'slow') {
      await new Promise(resolve => setTimeout(resolve, 1200)) // longer than the lease
      await work.transaction(client => client.query("insert into done values ('long slow')"), { pages: 1 })
    } else if (text === 'bad') throw new parley.Final('not to be done')
    return { text }
  }
  await parley.putBatch(db.client, queue, ['slow', 'returned', 'bad'])
  await working(parley.ClaimConsumer, { queue, handler, lease: 900, readers: 2 }, async () => {
    await db.until("select count(*) from parley.finished_messages where queue_name = 'long'", 2)
    await db.until(asideIn(queue), 1)
    const [sent] = await parley.putEach(db.client, queue, ['cancelled'])
    for (const end = Date.now() + patience; isCancelled === null && Date.now() < end;) await new Promise(resolve => setTimeout(resolve, 10))
    assert.equal(await parley.cancel(db.client, queue, sent.messageId, { running: true }), true)
    for (const end = Date.now() + patience; !isCancelled && Date.now() < end;) await new Promise(resolve => setTimeout(resolve, 10))
  })
  assert.equal(isCancelled, true)
  assert.equal(String(await db.value(doneIn(queue))), '1')
})

test('what a handler puts carries its trace', async () => {
  const queue = await db.queue('traced')
  await parley.put(db.client, queue, 'first', { traceContext: trace })
  const handler = async (client, [message]) => {
    if (message.text === 'first') await parley.put(client, queue, 'second')
    else await client.query('insert into done values ($1)', ['traced ' + message.traceContext])
  }
  await working(parley.SimpleConsumer, { queue, handler }, () => db.until("select max(job) from done where job like 'traced %'", 'traced ' + trace))
  parley.tracePuts(() => trace)
  await parley.put(db.client, queue, 'by the tracer')
  parley.tracePuts(null)
  assert.equal((await parley.take(db.client, queue))[0].traceContext, trace)
})

test('a stop lets handlers finish and cuts off those that do not', async () => {
  const queue = await db.queue('stops')
  let release
  let began
  const handler = async client => {
    const released = new Promise(resolve => { release = resolve })
    began()
    await released
    await client.query("insert into done values ('stops finished')")
  }
  for (const graceTime of [patience, 100]) {
    await parley.put(db.client, queue, 'a')
    const beginning = new Promise(resolve => { began = resolve })
    const running = working(parley.SimpleConsumer, { queue, handler, graceTime }, async worker => {
      await beginning
      worker.stop()
      if (graceTime > 1000) setTimeout(() => release(), 200)
    })
    if (graceTime > 1000) await running
    else await assert.rejects(running, parley.HandlersCutOff)
    assert.equal(String(await db.value(doneIn(queue))), '1')
  }
  release()
  await db.until("select waiting_messages + retrying_messages from parley.simple_queues where queue_name = 'stops'", 1)
})

// Also one that is about to sleep, or to connect: nothing else would wake it before the poll interval.
test('a stop wakes each reader and ends all sessions', async () => {
  const queue = await db.queue('idle')
  const sessions = "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"
  await db.until(sessions, 1)
  const settings = { queue, handler: () => new Promise(resolve => setTimeout(resolve, 5)), pollInterval: 3600000 }
  for (let round = 0; round < 40; round++) {
    await working(parley.SimpleConsumer, { ...settings, readers: 4 }, () => new Promise(resolve => setTimeout(resolve, round)))
  }
  await db.until(sessions, 1)
  // The heartbeat may be connecting when the worker stops.
  for (let round = 0; round < 20; round++) {
    await parley.put(db.client, queue, 'long')
    let began
    const beginning = new Promise(resolve => { began = resolve })
    const handler = () => { began(); return settings.handler() }
    await working(parley.ClaimConsumer, { ...settings, handler, lease: 6 }, () => beginning)
  }
  await db.until(sessions, 1)
})

test('a worker of claims that is refused leaves nothing behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
  const before = timers()
  const without = Object.assign(new URL(db.dsn), { pathname: '/postgres' }).href
  const worker = new parley.ClaimConsumer({ queue: 'none', handler () {}, connectionString: without, logger: silent })
  await assert.rejects(worker.run(), parley.BrokerUnusable)
  assert.ok(timers() <= before, 'a heartbeat goes on')
})

test('a handler that takes too long is rolled back', async () => {
  const queue = await db.queue('late')
  await parley.put(db.client, queue, 'a')
  const handler = async client => {
    await client.query("insert into done values ('late a')")
    await client.query('select pg_sleep(20)')
  }
  await working(parley.SimpleConsumer, { queue, handler, handlerTimeout: 200 }, () => db.until(asideIn(queue), 1))
  assert.match(await db.value("select error from parley.set_aside_messages where queue_name = 'late'"), /longer than its time-out/)
  assert.equal(String(await db.value(doneIn(queue))), '0')
})

test('a worker refuses what it cannot work with', async () => {
  const elsewhere = Object.assign(new URL(db.dsn), { pathname: '/template1' }).href
  const handler = () => {}
  await assert.rejects(new parley.SimpleConsumer({ queue: 'jobs', handler, connectionString: elsewhere, logger: silent }).run(), parley.BrokerUnusable)
  assert.throws(() => new parley.SimpleConsumer({ queue: '', handler, connectionString: elsewhere }), /does not know its queue/)
  assert.throws(() => new parley.SimpleConsumer({ queue: 'jobs', connectionString: elsewhere }), /has no handler/)
})
