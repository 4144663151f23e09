#!/usr/bin/env bash
# cbor-sync 1.0.4, borc 3.0.0 and cbor-js 0.1.0 (npm), Node 20, beside cbor2 6.3.0 (PyPI), Python 3.11: tag 1 of CBOR is a time in seconds
# since 1970, whole or with a fraction (RFC 8949, 3.4.2). cbor-sync takes the number for milliseconds, so that a time of 2013, an example of
# the standard (Appendix A), lies in January 1970. borc writes a time with a fraction rounded to a whole second, and half a second late.
# cbor-js writes each time as an empty map. None of them sets an error. The texts of tag 0 come through in cbor-sync, and so does what it
# wrote itself, so that a test with one side passes.
#
# Seen:
#   cbor-sync reads c11a514b67b0: 1970-01-16T18:51:36.240Z
#   cbor2 reads c11a514b67b0: 2013-03-21T20:04:00Z
#   borc writes 2013-03-21T20:04:00.500Z: 2013-03-21T20:04:01Z by cbor2
#   cbor-js writes 2013-03-21T20:04:00.500Z: {} by cbor2
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cbor2==6.3.0
npm install --silent --no-fund --no-audit --ignore-scripts cbor-sync@1.0.4 borc@3.0.0 cbor-js@0.1.0
cat > read.py <<'END'
import sys
from datetime import datetime

import cbor2

value = cbor2.loads(bytes.fromhex(sys.argv[1]))
print(value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value)
END
cat > read.mjs <<'END'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const right = (hex) => execFileSync('venv/bin/python', ['read.py', hex]).toString().trim()
const example = 'c11a514b67b0'
console.log(`cbor-sync reads ${example}: ${require('cbor-sync').decode(Buffer.from(example, 'hex')).toISOString()}`)
console.log(`cbor2 reads ${example}: ${right(example)}`)
const time = new Date('2013-03-21T20:04:00.500Z')
for (const name of ['borc', 'cbor-js']) {
  const octets = Buffer.from(require(name).encode(time))
  console.log(`${name} writes ${time.toISOString()}: ${right(octets.toString('hex'))} by cbor2`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
cbor-sync reads c11a514b67b0: 1970-01-16T18:51:36.240Z
cbor2 reads c11a514b67b0: 2013-03-21T20:04:00Z
borc writes 2013-03-21T20:04:00.500Z: 2013-03-21T20:04:01Z by cbor2
cbor-js writes 2013-03-21T20:04:00.500Z: {} by cbor2
END
