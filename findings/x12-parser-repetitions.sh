#!/usr/bin/env bash
# x12-parser 1.3.0 (npm), Node 20: the parser reads the repetition separator of version 00501 from ISA and never splits by it. A composite that is repeated so
# comes as one with more components, of which one holds the separator. An interchange whose first piece is shorter than ISA, as a socket may
# give it, becomes one long segment. A blank that begins a text, which has a meaning in X12, is lost. No error is set.
#
# Seen:
#   DMG*D8*19700101*F**:RET:1^:RET:2 gives 5-1 "RET", 5-2 "1^", 5-3 "RET", 5-4 "2"
#   MSG* two gives 1 "two"
#   in pieces of 150: ISA GS ST MSG SE GE IEA
#   in pieces of 100: ISA
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts x12-parser@1.3.0
cat > read.mjs <<'END'
import { Readable } from 'node:stream'
import { X12parser } from 'x12-parser'

const isa = ['ISA', '00', ''.padEnd(10), '00', ''.padEnd(10), 'ZZ', 'SENDER'.padEnd(15), 'ZZ', 'RECEIVER'.padEnd(15),
  '260101', '1200', '^', '00501', '000000001', '0', 'P', ':']

async function read(segment, size) {
  const octets = Buffer.from([isa.join('*'), 'GS*BE*S*R*20260101*1200*1*X*005010X220A1', 'ST*834*0001', segment,
    'SE*3*0001', 'GE*1*1', 'IEA*1*000000001', ''].join('~'))
  const pieces = []
  for (let at = 0; at < octets.length; at += size) pieces.push(octets.subarray(at, at + size))
  return Readable.from(pieces).pipe(new X12parser()).toArray()
}

for (const [text, element] of [['DMG*D8*19700101*F**:RET:1^:RET:2', '5-'], ['MSG* two', '1']]) {
  const segment = (await read(text, 150))[3]
  const values = Object.entries(segment).filter(([name]) => name.startsWith(element))
  console.log(`${text} gives ${values.map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(', ')}`)
}
for (const size of [150, 100]) {
  console.log(`in pieces of ${size}: ${(await read('MSG*two', size)).map((segment) => segment.name).join(' ')}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
DMG*D8*19700101*F**:RET:1^:RET:2 gives 5-1 "RET", 5-2 "1^", 5-3 "RET", 5-4 "2"
MSG* two gives 1 "two"
in pieces of 150: ISA GS ST MSG SE GE IEA
in pieces of 100: ISA
END
