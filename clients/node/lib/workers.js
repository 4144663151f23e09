// Workers: each reader has a connection and does one transaction after the other until the worker stops.
import pg from 'pg'
import { endConversation, fail, failConversation, receive, recordFailure, retry, retryConversation, run, take } from './calls.js'
import {
  BrokerUnusable, ConversationNotFound, EndNotAllowed, Final, HandlersCutOff, HandlerTimeout, QueueDisabled, RetryAfter, translate
} from './errors.js'
import { handling } from './tracing.js'
import { transaction } from './transaction.js'
import { WakeUps } from './wakeups.js'

const schemaVersion = 1
// After a failure a reader pauses, from the first to the longest, in milliseconds, twice as long each time.
const [firstPause, longestPause] = [100, 10000]
// A disabled queue is tried again after so many poll intervals: somebody has to enable it by hand.
const disabledPolls = 5

/** A failure to handle messages, as opposed to one of the broker or of the connection; report says it to the broker. */
export class HandlerFailed extends Error {
  constructor (subject, cause, report) {
    super(cause?.message ?? String(cause), { cause })
    Object.assign(this, { subject, report })
  }
}

/** What all workers have in common. Times are in milliseconds. */
export class Worker {
  #stopping
  #stopNow
  #wakeUps
  #reading = new Map() // of each reader, its client, or null

  constructor ({
    queue, handler, connectionString = process.env.DATABASE_URL, readers = 1, handlerTimeout = 0, graceTime = 30000,
    pollInterval = 1000, listenConnectionString, logger = console, observer
  }) {
    if (!connectionString) throw new TypeError('the worker does not know its database: give connectionString, or set DATABASE_URL')
    if (!queue) throw new TypeError('the worker does not know its queue: give its name')
    if (typeof handler !== 'function') throw new TypeError('the worker has no handler: give a function')
    if (!(readers >= 1) || !(pollInterval > 0) || !(graceTime >= 0) || !(handlerTimeout >= 0)) {
      throw new RangeError('readers must be at least 1, pollInterval above zero, and times not negative')
    }
    Object.assign(this, {
      queue, handler, connectionString, readers, handlerTimeout, graceTime, pollInterval, listenConnectionString, logger, observer
    })
    this.isStopping = false
    this.#stopping = new Promise(resolve => { this.#stopNow = resolve })
    this.#wakeUps = new WakeUps(this)
  }

  /** Has run take nothing more and return when running handlers have finished, after graceTime at the latest. */
  stop () {
    this.isStopping = true
    this.#stopNow()
    this.#wakeUps.notifyAll()
  }

  /**
   * Works until stop is called, or SIGTERM or SIGINT comes. Throws BrokerUnusable for a schema that does not fit or a copy
   * of a database, HandlersCutOff when handlers did not finish in time and were rolled back.
   */
  async run () {
    await this.#attach()
    const onSignal = () => this.stop()
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, onSignal)
    try {
      const listening = this.#wakeUps.listen()
      const readers = Array.from({ length: this.readers }, (_, number) => this.#read(number))
      await this.#stopping
      const grace = after(this.graceTime)
      await Promise.race([Promise.all(readers), grace])
      clearTimeout(grace.timer)
      const late = this.#reading.size
      for (const client of this.#reading.values()) if (client) this.disconnect(client)
      if (late > 0) {
        throw new HandlersCutOff(`queue ${this.queue}: ${late} handlers did not finish within ${this.graceTime} ms and were rolled back`)
      }
      await listening
    } finally {
      for (const signal of ['SIGTERM', 'SIGINT']) process.removeListener(signal, onSignal)
    }
  }

  /** Waits so long, or until the worker stops. */
  async pause (milliseconds) {
    const waiting = after(milliseconds)
    await Promise.race([waiting, this.#stopping])
    clearTimeout(waiting.timer)
  }

  async connect (connectionString = this.connectionString) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10000 })
    client.isLost = false
    // Without a listener the loss of an idle connection would end the process.
    client.on('error', () => { client.isLost = true })
    client.on('end', () => { client.isLost = true })
    await client.connect()
    return client
  }

  /** Ends a connection at once, with the statement that runs on it: its handler may still be using it. */
  disconnect (client) {
    if (client.isLost) return
    client.isLost = true
    const { processID, secretKey } = client
    const stream = client.connection.stream
    if (client.readyForQuery) {
      client.end().catch(() => {})
      return
    }
    const canceller = new pg.Client({ connectionString: this.connectionString })
    canceller.on('error', () => {})
    const { connection } = canceller
    connection.on('error', () => stream.destroy())
    connection.on('connect', () => {
      connection.cancel(processID, secretKey)
      stream.destroy()
    })
    connection.on('end', () => stream.destroy())
    if (canceller.host?.startsWith('/')) connection.connect(`${canceller.host}/.s.PGSQL.${canceller.port}`)
    else connection.connect(canceller.port, canceller.host)
  }

  /** That the database cannot be reached just now is no reason to refuse: readers try again by themselves. */
  async #attach () {
    let client
    try {
      client = await this.connect()
      const [broker] = await run(client, `select schema_version, oldest_client_version, broker_state,
        coalesce(advice, '') as advice from parley.attach_broker()`)
      if (broker.schema_version < schemaVersion) throw new BrokerUnusable('the schema parley is older than this package: run parley upgrade')
      if (broker.oldest_client_version > schemaVersion) {
        throw new BrokerUnusable('the schema parley is newer than this package: install a newer parley-broker')
      }
      if (broker.broker_state === 'ELSEWHERE') {
        throw new BrokerUnusable(`the broker is not where it was enabled last. ${broker.advice}`)
      }
    } catch (error) {
      if (error instanceof BrokerUnusable) throw error
      if (/^(3F|42|SB)/.test(error.code ?? '')) throw new BrokerUnusable(translate(error).message, { cause: error })
      this.logger.warn(`queue ${this.queue}: the database is away: ${error.message}`)
    } finally {
      if (client) this.disconnect(client)
    }
  }

  /** The life of one reader. */
  async #read (number) {
    let client = null
    let failures = 0
    this.#reading.set(number, null)
    while (!this.isStopping) {
      try {
        if (!client || client.isLost) {
          client = await this.connect()
          this.#reading.set(number, client)
        }
        if (await this.workOnce(client)) failures = 0
        else if (!await this.#wakeUps.ask(client)) {
          failures = 0
          await this.#wakeUps.wait()
        }
      } catch (error) {
        failures++
        const came = error instanceof HandlerFailed ? await this.#report(client, error) : null
        const pause = this.#judge(error, failures, came)
        await this.pause(pause)
      }
    }
    if (client) this.disconnect(client)
    this.#reading.delete(number)
  }

  /**
   * Says why messages could not be handled, and gives what came of them, if that is known. A failure that is not reported
   * is still counted, without its reason.
   */
  async #report (client, failure) {
    let other
    try {
      if (!client || client.isLost) client = other = await this.connect()
      return await transaction(client, () => failure.report(client))
    } catch (error) {
      this.logger.warn(`the failure could not be reported to the broker: ${error.message}`)
      return null
    } finally {
      if (other) this.disconnect(other)
    }
  }

  /** Logs why nothing was committed, and says for how long to pause. */
  #judge (error, failures, came) {
    let pause = Math.min(longestPause, firstPause * 2 ** Math.min(failures - 1, 16)) * (0.5 + Math.random() / 2)
    if (error instanceof HandlerFailed) {
      this.logger.warn(`queue ${this.queue}: the handler failed with ${error.subject} (${fateOf(came)}):`, error.cause)
    } else if (error instanceof QueueDisabled) {
      pause = disabledPolls * this.pollInterval
      this.logger.error(`queue ${this.queue} is disabled; trying again in ${pause} ms: ${error.message}`)
    } else {
      this.logger.error(`queue ${this.queue}: nothing could be received; trying again in ${Math.round(pause)} ms: ${error.message}`)
    }
    return pause
  }

  /** Wakes another reader: where one message is there may be others. */
  found () { this.#wakeUps.notifyOthers() }

  /** Calls the handler, within its time, and observes it. */
  async call (client, messages, work) {
    const began = performance.now()
    let failure = null
    try {
      return await handling(messages, () => this.#within(client, work))
    } catch (error) {
      failure = error
      throw error
    } finally {
      try {
        this.observer?.({ queue: this.queue, messages: messages.length, milliseconds: performance.now() - began, error: failure })
      } catch (error) {
        this.logger.error(`queue ${this.queue}: the observer failed:`, error)
      }
    }
  }

  async #within (client, work) {
    if (!this.handlerTimeout) return await work()
    const late = after(this.handlerTimeout, 'late')
    const working = (async () => work())()
    working.catch(() => {})
    try {
      const first = await Promise.race([working, late])
      if (first !== 'late' || late.isOver !== true) return first
    } finally {
      clearTimeout(late.timer)
    }
    // The handler cannot be interrupted: what it does from now on finds no connection.
    if (client) this.disconnect(client)
    throw new HandlerTimeout(`the handler took longer than its time-out of ${this.handlerTimeout} ms and was rolled back`)
  }
}

/** Says what came of messages after a failure. */
function fateOf (came) {
  if (came?.isSetAside) return 'set aside'
  return came?.retryAt ? `waiting until ${came.retryAt.toISOString()}` : 'in the queue again'
}

/** A promise that is kept after so many milliseconds; its timer can be cleared. */
function after (milliseconds, value) {
  let timer
  const waiting = new Promise(resolve => {
    timer = setTimeout(() => { waiting.isOver = true; resolve(value) }, milliseconds)
  })
  waiting.timer = timer
  return waiting
}

/** Takes from a simple queue and awaits handler(client, messages) in the transaction that took them. */
export class SimpleConsumer extends Worker {
  constructor ({ count = 1, ...settings }) {
    super(settings)
    this.count = count
  }

  async workOnce (client) {
    let messages = []
    try {
      await transaction(client, async () => {
        messages = await take(client, this.queue, { count: this.count, asReader: true })
        if (messages.length === 0) return
        this.found()
        await this.call(client, messages, () => this.handler(client, messages))
      })
    } catch (error) {
      // When the connection is lost that is not the message's fault, and the broker counts it.
      if (messages.length === 0 || (client.isLost && !(error instanceof HandlerTimeout))) throw error
      const ids = messages.map(message => message.messageId)
      throw new HandlerFailed(`messages ${ids}`, error, async reporting => {
        // Of several messages nobody knows which was bad: none is reported, and each comes alone after that.
        if (ids.length > 1) return null
        if (error instanceof Final) return { isSetAside: await fail(reporting, this.queue, ids[0], error) }
        return await retry(reporting, this.queue, ids[0], error, { delay: error instanceof RetryAfter ? error.delay : null })
      })
    }
    return messages.length > 0
  }
}

/** Receives from a queue of conversations and awaits handler(client, messages) in that transaction. */
export class Consumer extends Worker {
  #singles = 0 // so many messages are received alone, after a failure

  constructor ({ top = 100, handleSystemMessages = false, ...settings }) {
    super(settings)
    Object.assign(this, { top, handleSystemMessages })
  }

  async workOnce (client) {
    let messages = []
    try {
      await transaction(client, async () => {
        messages = await receive(client, this.queue, { top: this.#singles > 0 ? 1 : this.top, asReader: true })
        if (messages.length === 0) return
        this.found()
        await this.#handle(client, messages)
      })
    } catch (error) {
      if (messages.length === 0 || (client.isLost && !(error instanceof HandlerTimeout))) throw error
      this.#singles = Math.max(this.#singles, messages.length)
      const handles = new Set(messages.map(message => message.conversationHandle))
      throw new HandlerFailed(`conversation group ${messages[0].conversationGroupId}`, error, async reporting => {
        let came = null
        for (const handle of handles) {
          if (error instanceof Final) came = { isSetAside: await failConversation(reporting, handle, error) }
          else if (error instanceof RetryAfter) came = await retryConversation(reporting, handle, error, { delay: error.delay })
          else await recordFailure(reporting, handle, error)
        }
        return handles.size === 1 ? came : null
      })
    }
    this.#singles = Math.max(0, this.#singles - messages.length)
    return messages.length > 0
  }

  async #handle (client, messages) {
    if (this.handleSystemMessages) {
      await this.call(client, messages, () => this.handler(client, messages))
      return
    }
    const isOver = message => message.isEndDialog || message.isError
    const others = messages.filter(message => !isOver(message))
    for (const message of messages.filter(message => message.isError)) {
      this.logger.warn(`service ${message.serviceName}, conversation ${message.conversationHandle}: ${describeError(message)}`)
    }
    if (others.length > 0) await this.call(client, others, () => this.handler(client, others))
    for (const handle of new Set(messages.filter(isOver).map(message => message.conversationHandle))) {
      await client.query('savepoint parley_end')
      try {
        await endConversation(client, handle)
      } catch (error) {
        // The handler may have ended it already.
        if (!(error instanceof ConversationNotFound || error instanceof EndNotAllowed)) throw error
        await client.query('rollback to savepoint parley_end')
      }
    }
  }
}

function describeError (message) {
  try {
    return message.error().message
  } catch (error) {
    return `ended with an error that cannot be read: ${error.message}`
  }
}
