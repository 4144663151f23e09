#!/usr/bin/env bash
# sparkplug-payload 1.0.3 (npm, Eclipse Tahu's own), Node 20: a metric of type Int64 is signed and travels as an unsigned number of 64 bits
# (Sparkplug 3.0.0, Datatype Details). The package does not take it back: minus five is read as 18446744073709551611. Of Int8, Int16 and
# Int32, which travel in the same way with 32 bits, it takes it back. No error is set, and the type of the metric still says Int64. A bridge
# from Sparkplug to Parley reads such a value with BigInt.asIntN(64, value).
#
# Seen:
#   Int8: -5 read as -5, as 64 signed bits -5
#   Int16: -5 read as -5, as 64 signed bits -5
#   Int32: -5 read as -5, as 64 signed bits -5
#   Int64: -5 read as 18446744073709551611, as 64 signed bits -5
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts sparkplug-payload@1.0.3 long@5.3.2
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const Long = require('long')
const sparkplug = require('sparkplug-payload').get('spBv1.0')
const metrics = ['Int8', 'Int16', 'Int32', 'Int64'].map((type) =>
  ({ name: type, type, timestamp: 1, value: type === 'Int64' ? Long.fromNumber(-5) : -5 }))
const octets = sparkplug.encodePayload({ timestamp: 1, seq: 0, metrics })
for (const { type, value } of sparkplug.decodePayload(octets).metrics) {
  console.log(`${type}: -5 read as ${value}, as 64 signed bits ${BigInt.asIntN(64, BigInt(String(value)))}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
Int8: -5 read as -5, as 64 signed bits -5
Int16: -5 read as -5, as 64 signed bits -5
Int32: -5 read as -5, as 64 signed bits -5
Int64: -5 read as 18446744073709551611, as 64 signed bits -5
END
