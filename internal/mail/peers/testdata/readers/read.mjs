// Reads each message of a folder by mailparser, and prints what it has read, as JSON.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { simpleParser } from 'mailparser'

const list = (field) => [field ?? []].flat().flatMap((one) => one.value).flatMap((one) => one.group ?? [one])
  .map((one) => (one.name ? `${one.name} <${one.address}>` : one.address)).join(', ')
const ids = (text) => [text ?? []].flat().join(' ')

async function read(path) {
  const m = await simpleParser(readFileSync(path), {
    skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, skipImageLinks: true, keepCidLinks: true,
  })
  const attachments = m.attachments.map((a) => {
    const size = a.contentType === 'message/rfc822' ? '' : ` ${a.size}`
    return `${a.contentType} ${a.filename || '-'}${size}`
  })
  // What is no date is the time of reading.
  const isNow = m.date && Math.abs(Date.now() - m.date) < 86_400_000
  return {
    subject: m.subject ?? '', date: isNow ? 'now' : (m.date?.toISOString().replace('.000', '') ?? ''),
    from: list(m.from), to: list(m.to), cc: list(m.cc), reply_to: list(m.replyTo),
    in_reply_to: ids(m.inReplyTo), references: ids(m.references),
    text: m.text ?? '', html: m.html || '', attachments: attachments.join(', '),
  }
}

const messages = {}
for (const name of readdirSync(process.argv[2]).filter((file) => file.endsWith('.eml')).sort()) {
  try {
    messages[basename(name, '.eml')] = await read(join(process.argv[2], name))
  } catch (error) {
    messages[basename(name, '.eml')] = { error: `error ${error.message}` }
  }
}
console.log(JSON.stringify({ version: '3.14.2', messages }))
