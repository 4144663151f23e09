// Errors of the broker: the SQLSTATE of class SB is Service Broker's number, and the number is the class.

/** An error of the broker: message has the fact, the detail and the remedy. */
export class ParleyError extends Error {
  constructor (number, fact, { detail, hint, code, cause } = {}) {
    super([`${fact} (error ${number}).`, detail, hint].filter(Boolean).join(' '), { cause })
    Object.assign(this, { name: new.target.name, number, fact, detail, hint, code })
  }
}

export class ConversationNotFound extends ParleyError {}
export class EndNotAllowed extends ParleyError {}
export class SendNotAllowed extends ParleyError {}
export class ConversationGroupNotFound extends ParleyError {}
export class TimerNotAllowed extends ParleyError {}
export class MessageTooLarge extends ParleyError {}
export class NoBroker extends ParleyError {}
export class QueueDisabled extends ParleyError {}
export class QueueFull extends ParleyError {}
export class PermissionDenied extends ParleyError {}
export class QueueNotFound extends ParleyError {}
export class WrongArgument extends ParleyError {}
export class StillUsed extends ParleyError {}

const byNumber = {
  8426: ConversationNotFound, 8427: EndNotAllowed, 8429: SendNotAllowed, 8436: ConversationGroupNotFound,
  8458: TimerNotAllowed, 8459: MessageTooLarge, 8442: NoBroker, 9617: QueueDisabled, 10928: QueueFull,
  229: PermissionDenied, 208: QueueNotFound, 8402: WrongArgument, 3716: StillUsed
}

/** Gives the error for one of the server; one that is not the broker's, or that was translated before, stays as it is. */
export function translate (error) {
  if (error instanceof ParleyError) return error
  const code = error?.code
  if (code === '3F000' && error.message.includes('"parley"')) {
    return new NoBroker(8442, 'there is no broker in this database', {
      detail: error.message, hint: 'Connect to the database of the broker, or install one: parley install.', code, cause: error
    })
  }
  if (typeof code !== 'string' || !/^SB[0-9A-Z]{3}$/.test(code)) return error
  const number = parseInt(code.slice(2), 36)
  const Kind = byNumber[number] ?? ParleyError
  return new Kind(number, error.message, { detail: error.detail, hint: error.hint, code, cause: error })
}

class Named extends Error {
  constructor (message, options) {
    super(message, options)
    this.name = new.target.name
  }
}

/** The conversation ended with an error: the code of the far side, or the negative of a number of the broker. */
export class ConversationError extends Named {
  constructor (code, description) {
    super(`the conversation ended with error ${code}: ${description}`)
    Object.assign(this, { errorCode: code, description })
  }
}
/** The other side has ended the conversation without a reply. */
export class NoReply extends Named {}
/** No reply came in time. The target receives an Error message with code 408. */
export class RequestTimeout extends Named {}
/** Somebody else has the messages by now, or they were cancelled: what was done with them has to be rolled back. */
export class ClaimLost extends Named {}
/** A worker cannot work with this database: its schema does not fit this release, or the broker is elsewhere. */
export class BrokerUnusable extends Named {}
/** Handlers did not finish within the time of grace, and their work was rolled back. */
export class HandlersCutOff extends Named {}
/** The handler took longer than handlerTimeout and was rolled back. */
export class HandlerTimeout extends Named {}

/** Thrown by a handler, has the work wait for so many milliseconds, up to 7 days, whatever the policy of the queue. */
export class RetryAfter extends Named {
  constructor (delay, reason = '') {
    super(String(reason?.message ?? reason), { cause: reason instanceof Error ? reason : undefined })
    this.delay = delay
  }
}
/** Thrown by a handler, sets the work aside at once: another attempt would be in vain. */
export class Final extends Named {}

/** Gives the SQLSTATE of a failure, if it has one, and its text as PostgreSQL takes it. */
export function describe (failure) {
  if (failure === undefined || failure === null) return [null, null]
  if (!(failure instanceof Error)) return [null, storable(String(failure))]
  const of = failure.code ? failure : failure.cause ?? failure
  const code = typeof of?.code === 'string' && /^[0-9A-Z]{5}$/.test(of.code) ? of.code : null
  return [code, storable(textOf(failure))]
}

// So many causes of a failure are told.
const mostCauses = 4

/** The text of a failure with its causes: fetch says no more than "fetch failed", and why stands in its cause. */
function textOf (failure) {
  const texts = []
  for (let at = failure, left = mostCauses; at && left >= 0; at = at.cause, left--) {
    // Where a name has several addresses, net gives the errors of all of them, and no text of its own.
    const several = at instanceof AggregateError && !at.message ? at.errors.map(error => error?.message).join(', ') : ''
    const text = at instanceof Error ? at.message || several : String(at)
    // An error of the broker has the text of its cause already, and so has a RetryAfter.
    if (text && !texts.some(told => told.includes(text))) texts.push(text)
  }
  return texts.join(': ') || failure.name
}

const storable = text => text.replaceAll('\0', '?').toWellFormed?.() ?? text.replaceAll('\0', '?')
