#!/usr/bin/env bash
# pg-boss 10.4.2 (npm) on PostgreSQL 18 in @electric-sql/pglite 0.5.17, Node 20: a batch holds the right jobs, those with the highest priority and the
# oldest of these, but in no order. The statement picks them in order, and the update that gives them back does not keep it. So a handler that works
# through its batch from the front does urgent jobs last, and jobs of one customer in another order than they were sent. One job a call is in order.
#
# Seen:
#   batch of 20 of 40: the 20 most urgent, in order: no
#   20 calls for one: the others, in order: yes
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts pg-boss@10.4.2 @electric-sql/pglite@0.5.17
cat > read.mjs <<'END'
import { PGlite } from '@electric-sql/pglite'
import PgBoss from 'pg-boss'

const database = new PGlite()
const executeSql = async (text, values) =>
  values?.length ? database.query(text, values) : (await database.exec(text)).at(-1) ?? { rows: [] }
const boss = new PgBoss({ db: { executeSql }, schedule: false, supervise: false })
await boss.start()
await boss.createQueue('work')
const count = 40
for (let i = 0; i < count; i++) await boss.send('work', { number: i }, { priority: count - i })
const fetched = []
for (const batchSize of [count / 2, ...Array(count / 2).fill(1)]) {
  fetched.push(...(await boss.fetch('work', { batchSize })).map((job) => job.data.number))
}
const batch = fetched.slice(0, count / 2)
const single = fetched.slice(count / 2)
const isInOrder = (numbers) => (numbers.every((n, i) => i === 0 || numbers[i - 1] < n) ? 'yes' : 'no')
const isUrgent = batch.every((n) => n < count / 2)
console.log(`batch of ${batch.length} of ${count}: ${isUrgent ? 'the 20 most urgent' : 'others'}, in order: ${isInOrder(batch)}`)
console.log(`${single.length} calls for one: the others, in order: ${isInOrder(single)}`)
process.exit(0)
END
node read.mjs | tee seen
diff seen - <<'END'
batch of 20 of 40: the 20 most urgent, in order: no
20 calls for one: the others, in order: yes
END
