// Wake-ups of the readers of a worker: by notifications, and once each poll interval. Each wakes one reader; a reader
// that finds messages wakes another one. So a burst wakes all of them, and a single message only one.
import { run } from './calls.js'

// For so many seconds beyond a poll interval senders are asked to notify. It costs them throughput, so it is short.
const askedBeyond = 3

export class WakeUps {
  #worker
  #sleepers = []
  #isPending = false
  #isListening = false
  #askedUntil = 0
  #payload = null
  #asking = Promise.resolve()

  constructor (worker) { this.#worker = worker }

  /** Wakes one reader, or the next one that sleeps. */
  notify () {
    const wake = this.#sleepers.shift()
    if (wake) wake()
    else this.#isPending = true
  }

  /** Wakes one reader if any sleeps now. */
  notifyOthers () { this.#sleepers.shift()?.() }

  /** Wakes all, to stop. */
  notifyAll () { for (const wake of this.#sleepers.splice(0)) wake() }

  /** Sleeps until the next wake-up, and not for long: the listener gives one each poll interval, but may be connecting. */
  async wait () {
    if (this.#isPending) {
      this.#isPending = false
      return
    }
    if (this.#worker.isStopping) return
    let wake
    const woken = new Promise(resolve => { wake = resolve })
    this.#sleepers.push(wake)
    const timer = setTimeout(wake, 2 * this.#worker.pollInterval)
    await woken
    clearTimeout(timer)
    const place = this.#sleepers.indexOf(wake)
    if (place >= 0) this.#sleepers.splice(place, 1)
  }

  /** Asks senders to notify unless they do. True when they did not: then the queue has to be read once more. */
  ask (client) {
    const asked = this.#asking.then(() => this.#ask(client))
    this.#asking = asked.catch(() => {})
    return asked
  }

  async #ask (client) {
    const { queue, pollInterval } = this.#worker
    if (!this.#isListening || this.#askedUntil > Date.now() + pollInterval) return false
    const wasAsked = this.#askedUntil > Date.now()
    const seconds = Math.ceil(pollInterval / 1000) + askedBeyond
    const [{ payload }] = await run(client, 'select parley.listen_for_messages($1::text, $2::integer) as payload', [queue, seconds])
    const isKnown = payload === this.#payload
    this.#payload = payload
    this.#askedUntil = Date.now() + seconds * 1000
    return !(wasAsked && isKnown)
  }

  /** Wakes readers until the worker stops. */
  async listen () {
    const worker = this.#worker
    let failures = 0
    let isPossible = true
    while (!worker.isStopping) {
      try {
        if (isPossible) isPossible = await this.#listenOnce()
        failures = 0
      } catch (error) {
        if (++failures === 1) worker.logger.warn(`not notified of messages for now; polling: ${error.message}`)
      }
      await worker.pause(worker.pollInterval * Math.min(failures || 1, 10))
      this.notify()
    }
  }

  /** Wakes readers for as long as the connection lasts; false when no notification can come. */
  async #listenOnce () {
    const worker = this.#worker
    const client = await worker.connect(worker.listenConnectionString ?? worker.connectionString)
    try {
      const [{ pid }] = await run(client, 'select pg_backend_pid() as pid')
      // Through a pooler each transaction may have another session, and notifications go to none of the clients.
      if (!worker.listenConnectionString && pid !== client.processID) {
        worker.logger.info('connected through a pooler: polling; give listenConnectionString to be notified')
        return false
      }
      const lost = new Promise((resolve, reject) => {
        client.on('error', reject)
        client.on('end', () => reject(new Error('the connection has ended')))
      })
      lost.catch(() => {})
      client.on('notification', note => { if (note.payload === this.#payload) this.notify() })
      await client.query('set idle_session_timeout = 0')
      await client.query('listen parley')
      this.#askedUntil = 0
      this.#isListening = true
      this.notify() // a reader has to ask
      while (!worker.isStopping) {
        await Promise.race([lost, worker.pause(worker.pollInterval)])
        this.notify()
      }
    } finally {
      this.#isListening = false
      worker.disconnect(client)
    }
    return true
  }
}
