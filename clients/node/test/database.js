// A database for a file of tests: a copy of the one that PARLEY_TEST_DSN names, which has the schema parley.
import pg from 'pg'
import { after, before } from 'node:test'

let numbers = 0

/** For so many milliseconds a test waits for what must come. It is no measure of speed. */
export const patience = 120000

/** Gives an object that has dsn and client when the tests run. */
export function database () {
  const found = {}
  const template = new URL(process.env.PARLEY_TEST_DSN)
  const name = `node_${process.pid}_${++numbers}`
  const at = path => Object.assign(new URL(template), { pathname: path }).href
  const ask = async (dsn, ...statements) => {
    const client = new pg.Client({ connectionString: dsn })
    await client.connect()
    try {
      for (const statement of statements) await client.query(statement)
    } finally {
      await client.end()
    }
  }
  before(async () => {
    await ask(at('/postgres'), `create database ${name} template ${template.pathname.slice(1)}`)
    found.dsn = at('/' + name)
    const services = ['shop', 'warehouse'].flatMap(service => [
      `select parley.create_queue('${service}_queue')`,
      `select parley.create_service('${service}', '${service}_queue', array['DEFAULT'])`
    ])
    await ask(found.dsn, 'select parley.new_broker()', ...services, 'create table done (job text)')
    found.client = new pg.Client({ connectionString: found.dsn })
    await found.client.connect()
  })
  after(async () => {
    await found.client?.end()
    await ask(at('/postgres'), `drop database if exists ${name} with (force)`)
  })
  /** Makes a simple queue for one test. */
  found.queue = async name => {
    await found.client.query("select parley.create_queue($1, kind => 'SIMPLE', retry => $2)",
      [name, { first: '10 ms', longest: '10 ms', attempts: 3 }])
    await found.client.query("select parley.keep_finished($1, '1 hour')", [name])
    return name
  }
  found.value = async (text, values = []) => Object.values((await found.client.query(text, values)).rows[0])[0]
  /** Waits until a query gives an answer. */
  found.until = async (text, answer) => {
    for (let end = Date.now() + patience; ;) {
      const value = await found.value(text)
      if (String(value) === String(answer)) return
      if (Date.now() > end) throw new Error(`${text} gives ${value}, not ${answer}`)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
  return found
}
