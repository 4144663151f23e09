// What tsc must accept of index.d.ts, and what it must refuse: each line below @ts-expect-error has a mistake of a caller. Nothing runs.
import type { Client, ClientBase } from 'pg'
import type { PGlite } from '@electric-sql/pglite'
import * as parley from 'parley-broker'

/** Compiles where both types are the same, and any is not taken for one of them. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
function gives<Expected> () {
  return <Actual>(_: Promise<Actual>, same: Same<Actual, Expected>): void => { void same }
}

export function callsGiveWhatTheySay (client: ClientBase, light: PGlite, message: parley.Message, claimed: parley.Claim, at: Date): void {
  const trace = { traceContext: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
  gives<parley.SentMessage>()(parley.put(client, 'q', { a: 1 }, { key: 'k', priority: 7, deliverAt: at, deduplicationKey: 'd', ...trace }), true)
  gives<parley.SentMessage>()(parley.put(light, 'q', Buffer.from('b')), true)
  gives<void>()(parley.putBatch(client, 'q', ['a', null, [1], new Uint8Array(1)], { key: 'k' }), true)
  gives<parley.SentMessage[]>()(parley.putEach(client, 'q', ['a'], { keys: ['k', null], deduplicationKeys: [null, 'd'] }), true)
  gives<number>()(parley.putGroup(client, 'q', ['a'], 'then', { b: 1 }, { keys: [null], priority: 1 }), true)
  gives<parley.SentMessage>()(parley.putUnique(client, 'q', 'a', 'once', { key: 'k' }), true)
  gives<parley.TakenMessage[]>()(parley.take(light, 'q', { count: 10, timeout: 100 }), true)
  gives<parley.Retried>()(parley.retry(client, 'q', '1', new Error('busy'), { delay: 1000 }), true)
  gives<boolean>()(parley.fail(client, 'q', '1', 'in vain'), true)
  gives<boolean>()(parley.cancel(client, 'q', '1', { running: true }), true)
  gives<boolean>()(parley.done(client, 'q', '1', { pages: 3 }), true)
  gives<parley.Claim | null>()(parley.claim(client, 'q', { count: 2, lease: 60000 }), true)
  gives<boolean>()(parley.renew(client, claimed, { lease: 60000, progress: 'half' }), true)
  gives<boolean>()(parley.complete(client, claimed, [1]), true)
  gives<parley.Retried>()(parley.giveBack(client, claimed, new parley.Final('no'), { isFinal: true }), true)
  gives<string>()(parley.beginDialog(client, 'shop', 'warehouse', { contract: 'c', lifetime: 60, relatedConversation: 'h', encryption: false }), true)
  gives<parley.SentMessage | null>()(parley.send(client, 'h', 'body', { messageType: 'm', deliverAt: at, deduplicationKey: 'd' }), true)
  gives<void>()(parley.sendBatch(client, 'h', ['a', { b: 1 }], { messageType: 'm' }), true)
  gives<string>()(parley.beginAndSend(client, 'shop', 'warehouse', 'body', { messageType: 'm', lifetime: 60, deduplicationKey: 'd' }), true)
  gives<string>()(parley.sendAndEnd(client, 'shop', 'warehouse', null, { contract: 'c' }), true)
  gives<parley.Message[]>()(parley.receive(client, 'q', { top: 10, timeout: -1 }), true)
  gives<parley.Message | null>()(parley.receiveReply(client, 'h', { timeout: 1000 }), true)
  gives<void>()(parley.reply(client, message, { answer: 42 }, { messageType: 'm' }), true)
  gives<parley.Message>()(parley.request(client, 'shop', 'warehouse', 'body', { timeout: 5000, contract: 'c' }), true)
  gives<void>()(parley.endConversation(client, 'h', { errorCode: 7, description: 'why' }), true)
  gives<void>()(parley.beginConversationTimer(client, 'h', 60), true)
  gives<boolean>()(parley.recordFailure(client, 'h', new Error('busy')), true)
  gives<parley.Retried>()(parley.retryConversation(client, 'h', new Error('busy'), { delay: null }), true)
  gives<boolean>()(parley.failConversation(client, 'h'), true)
  parley.traceSends(target => target === 'shop' ? trace.traceContext : null)
  parley.tracePuts(null)
}

export function messagesHaveTheirColumns (taken: parley.TakenMessage, message: parley.Message, sent: parley.SentMessage): string {
  const id: string = taken.messageId
  const body: Buffer | null = taken.body ?? message.body
  const error: parley.ConversationError = message.error()
  const known: Date | null = sent.sentAt
  return [id, body?.length, error.errorCode + 1, error.description, known?.getTime(), taken.attempt + 1, message.isEndDialog].join()
}

export function workersTakeTheirSettings (): parley.SimpleConsumer[] {
  new parley.Consumer({ queue: 'q', top: 10, handleSystemMessages: true, handler: async (client, [first]) => { await client.query(first.conversationHandle) } })
  const long = new parley.ClaimConsumer({
    queue: 'q', count: 2, lease: 60000, connectionString: 'postgres://localhost', handler: async work => {
      work.progress({ page: 1 })
      await work.transaction(client => client.query('select 1'), { pages: work.messages.length })
    }
  })
  long.stop()
  return [new parley.SimpleConsumer({
    queue: 'q', count: 1, readers: 4, handlerTimeout: 1000, graceTime: 1000, pollInterval: 1000, listenConnectionString: 'postgres://localhost',
    logger: console, observer: turn => { turn.milliseconds.toFixed() }, handler: async (client, messages) => {
      if (messages[0].attempt > 3) throw new parley.Final('in vain')
      throw new parley.RetryAfter(60000, new Error('busy'))
    }
  })]
}

export function handlersTakeEitherClient (work: parley.Work): void {
  new parley.SimpleConsumer({ queue: 'q', handler: async (client: Client) => { await client.query('select 1') } }).stop()
  new parley.SimpleConsumer({ queue: 'q', handler: async (client: ClientBase) => { await client.query('select 1') } }).stop()
  new parley.Consumer({ queue: 'q', handler: (client: Client, messages: parley.Message[]) => { void [client, messages] } }).stop()
  void work.transaction((client: Client) => client.query('select 1'))
}

export async function mistakesAreRefused (client: ClientBase, light: PGlite): Promise<void> {
  // @ts-expect-error The queue comes before the body.
  await parley.put(client, { a: 1 }, 'q')
  // @ts-expect-error A key is a text.
  await parley.put(client, 'q', 'a', { key: 7 })
  // @ts-expect-error A unique key is no option.
  await parley.putUnique(client, 'q', 'a')
  // @ts-expect-error There is no such option.
  await parley.put(client, 'q', 'a', { delay: 1000 })
  // @ts-expect-error A batch is an array.
  await parley.putBatch(client, 'q', 'a')
  // @ts-expect-error The numbers of messages are texts.
  await parley.fail(client, 'q', 1)
  // @ts-expect-error A claim may be null.
  await parley.complete(client, await parley.claim(client, 'q'))
  // @ts-expect-error A request needs a timeout.
  await parley.request(client, 'shop', 'warehouse', 'a', {})
  // @ts-expect-error A request needs a client that can commit and wait.
  await parley.request(light, 'shop', 'warehouse', 'a', { timeout: 1000 })
  // @ts-expect-error A taken message has no conversation.
  const handle = (await parley.take(client, 'q'))[0].conversationHandle
  // @ts-expect-error A message cannot be changed.
  ;(await parley.receive(client, 'q'))[0].body = null
  // @ts-expect-error A worker needs a handler.
  const idle = new parley.SimpleConsumer({ queue: 'q' })
  // @ts-expect-error top is of conversations.
  const wrong = new parley.SimpleConsumer({ queue: 'q', top: 10, handler: () => {} })
  // @ts-expect-error Long work has no client until its transaction.
  const long = new parley.ClaimConsumer({ queue: 'q', handler: async (client, messages) => {} })
  void [handle, idle, wrong, long]
}
