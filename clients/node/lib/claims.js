// Long work: messages are claimed, no transaction is open, and a heartbeat renews the claim.
import { claim, complete, giveBack, renew, run } from './calls.js'
import { ClaimLost, Final, RetryAfter } from './errors.js'
import { transaction } from './transaction.js'
import { HandlerFailed, Worker } from './workers.js'

// Claims are renewed so many times in the time of their lease.
const beatsPerLease = 3

/** Claimed messages in the hands of a handler. */
class Work {
  #claimed
  #connect
  #progress

  constructor (claimed, connect) {
    this.#claimed = claimed
    this.#connect = connect
    this.messages = claimed.messages
    this.isLost = false
    this.isComplete = false
  }

  /** Shows those who wait how far the work is, with the next heartbeat. Throws ClaimLost when it has to break off. */
  progress (value) {
    this.require()
    this.#progress = value
  }

  /** Throws ClaimLost when the work has to break off. */
  require () {
    if (this.isLost) throw new ClaimLost(`claim ${this.#claimed.claim} of queue ${this.#claimed.queue} was lost or cancelled: break off`)
  }

  /** Does work(client) in a transaction, at whose end the messages are taken. Throws ClaimLost, and rolls back. */
  async transaction (work, result) {
    const client = await this.#connect()
    await transaction(client, async () => {
      await work(client)
      if (!await complete(client, this.#claimed, result)) {
        this.isLost = true
        this.require()
      }
    })
    this.isComplete = true
  }

  async beat (client, lease) {
    if (!await renew(client, this.#claimed, { lease, progress: this.#progress }) && !this.isComplete) this.isLost = true
  }
}

/** Claims messages of a simple queue for long work and awaits handler(work), while no transaction is open. */
export class ClaimConsumer extends Worker {
  #held = new Set()
  #beating
  #heart = null
  #isBeating = false
  #isFinished = false

  constructor ({ count = 1, lease = 60000, ...settings }) {
    super(settings)
    if (!(lease > 0)) throw new RangeError('lease must be above zero: give milliseconds')
    Object.assign(this, { count, lease })
  }

  async run () {
    this.#beating = setInterval(() => this.#beat(), this.lease / beatsPerLease)
    try {
      await super.run()
    } finally {
      clearInterval(this.#beating)
      this.#isFinished = true
      this.#rest()
    }
  }

  /** Closes the connection of the heartbeat. */
  #rest () {
    if (this.#heart) this.disconnect(this.#heart)
    this.#heart = null
  }

  async workOnce (client) {
    const claimed = await claim(client, this.queue, { count: this.count, lease: this.lease })
    if (!claimed) return false
    this.found()
    let other = null
    const work = new Work(claimed, async () => {
      // The server may have been started again while nothing was asked of it.
      if (!client.isLost && await run(client, 'select 1').then(() => true, () => false)) return client
      other ??= await this.connect()
      return other
    })
    this.#held.add(work)
    try {
      const result = await this.call(null, claimed.messages, () => this.handler(work))
      if (!work.isComplete) await work.transaction(async () => {}, result)
    } catch (error) {
      if (work.isComplete) this.logger.error(`queue ${this.queue}: the handler failed after its work was complete:`, error)
      else if (error instanceof ClaimLost) this.logger.warn(`queue ${this.queue}: ${error.message}`)
      else {
        const ids = claimed.messages.map(message => message.messageId)
        throw new HandlerFailed(`messages ${ids}`, error, async reporting => {
          return await giveBack(reporting, claimed, error, {
            delay: error instanceof RetryAfter ? error.delay : null, isFinal: error instanceof Final
          })
        })
      }
    } finally {
      this.#held.delete(work)
      if (other) this.disconnect(other)
    }
    return true
  }

  /** Renews all claims, and lets their handlers know which are lost. */
  async #beat () {
    // One at a time: a beat may take longer than the time between two, and opens the connection.
    if (this.#held.size === 0 || this.#isBeating) return
    this.#isBeating = true
    try {
      if (!this.#heart || this.#heart.isLost) this.#heart = await this.connect()
      for (const work of this.#held) if (!this.#isFinished) await work.beat(this.#heart, this.lease)
    } catch (error) {
      if (!this.#isFinished) this.logger.warn(`queue ${this.queue}: a claim could not be renewed: ${error.message}`)
      this.#rest()
    } finally {
      this.#isBeating = false
      // The worker may have ended while this connected.
      if (this.#isFinished) this.#rest()
    }
  }
}
