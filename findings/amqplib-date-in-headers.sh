#!/usr/bin/env bash
# amqplib 2.3.1 (npm, RabbitMQ's usual client), Node 20: a Date in the headers of a message becomes an empty table. The encoder that publish uses sets no
# error, and the receiver finds a header that is there and holds nothing. A timestamp has to be written as {'!': 'timestamp', value: seconds}.
#
# Seen:
#   Date: {}
#   tagged: {"!":"timestamp","value":1767323045}
#   number: 1767323045678
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts amqplib@2.3.1
cat > read.mjs <<'END'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL('./node_modules/amqplib/package.json'))
const codec = require('./lib/codec')
const given = {
  Date: new Date(1767323045678),
  tagged: { '!': 'timestamp', value: 1767323045 },
  number: 1767323045678,
}
for (const [name, value] of Object.entries(given)) {
  const buffer = Buffer.alloc(256)
  const size = codec.encodeTable(buffer, { header: value }, 0)
  console.log(`${name}: ${JSON.stringify(codec.decodeFields(buffer.subarray(4, size)).header)}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
Date: {}
tagged: {"!":"timestamp","value":1767323045}
number: 1767323045678
END
