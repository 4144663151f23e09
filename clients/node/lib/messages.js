// What comes out of a queue, as values.
import { ConversationError } from './errors.js'

const system = 'http://schemas.microsoft.com/SQL/ServiceBroker/'

class WithBody {
  /** The body as text; an empty one when the message has none. */
  get text () { return this.body ? this.body.toString('utf8') : '' }
  /** The body read as JSON. */
  json () { return this.body ? JSON.parse(this.text) : null }
}

const asBuffer = body => body === null || body === undefined ? null : Buffer.isBuffer(body) ? body : Buffer.from(body)

/** A message of a simple queue. */
export class TakenMessage extends WithBody {
  static columns = 'message_id, key, priority, body, enqueued_at, trace_context, coalesce(attempt, 1) as attempt'
  constructor (row) {
    super()
    this.messageId = String(row.message_id)
    this.key = row.key
    this.priority = Number(row.priority)
    this.body = asBuffer(row.body)
    this.enqueuedAt = row.enqueued_at
    this.traceContext = row.trace_context
    this.attempt = Number(row.attempt)
  }
}

/** A message of a conversation, with Service Broker's names. */
export class Message extends WithBody {
  static columns = 'priority, queuing_order, conversation_group_id, conversation_handle, message_sequence_number, service_name,' +
    ' service_contract_name, message_type_name, message_body, message_enqueue_time, trace_context'
  constructor (row) {
    super()
    this.priority = Number(row.priority)
    this.queuingOrder = String(row.queuing_order)
    this.conversationGroupId = row.conversation_group_id
    this.conversationHandle = row.conversation_handle
    this.messageSequenceNumber = String(row.message_sequence_number)
    this.serviceName = row.service_name
    this.serviceContractName = row.service_contract_name
    this.messageTypeName = row.message_type_name
    this.body = asBuffer(row.message_body)
    this.messageEnqueueTime = row.message_enqueue_time
    this.traceContext = row.trace_context
  }

  get isEndDialog () { return this.messageTypeName === system + 'EndDialog' }
  get isError () { return this.messageTypeName === system + 'Error' }
  get isDialogTimer () { return this.messageTypeName === system + 'DialogTimer' }

  /** Reads the body of an Error message: XML in UTF-16 with a byte-order mark, or in UTF-8. */
  error () {
    const body = this.body ?? Buffer.alloc(0)
    const mark = body.subarray(0, 2).toString('hex')
    const text = new TextDecoder(mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8').decode(body)
    const code = /<Code>\s*(-?\d+)\s*<\/Code>/.exec(text)?.[1]
    if (code === undefined) throw new Error('the body of an Error message has no code')
    const description = /<Description>([^]*?)<\/Description>/.exec(text)?.[1] ?? ''
    return new ConversationError(Number(code), unescape(description))
  }
}

const entities = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
const unescape = text => text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (all, hex, decimal, name) =>
  name ? entities[name] ?? all : String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)))

/** What came of a message; null where the broker says nothing. */
export function sent (row) {
  if (!row || row.is_duplicate === null) return null
  const number = value => value === null || value === undefined ? null : String(value)
  return {
    isDuplicate: row.is_duplicate, conversationHandle: row.conversation_handle, messageId: number(row.message_id),
    delayedId: number(row.delayed_id), sentAt: row.sent_at
  }
}
