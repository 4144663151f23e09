#!/usr/bin/env bash
# node-hl7-client 4.0.0 (npm), Node 20: get undoes the escapes of HL7 (version 2.5, 2.7) and set does not write them. A text that is read from one message and
# put into another, as a forwarder does, is cut at a bar or an ampersand that was escaped, and what follows is another field or another part.
# The message that is written is a valid one, and no error is set.
#
# Seen:
#   read: O&Reilly / 5 mg|day for a week
#   written: PID|||||O&Reilly / NTE|||5 mg|day for a week
#   read again: O / 5 mg
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts node-hl7-client@4.0.0
cat > read.mjs <<'END'
import { Message } from 'node-hl7-client'

const given = new Message({ text: ['MSH|^~\\&|A|B|C|D|20260101||ORU^R01|1|P|2.5', 'PID|1||7||O\\T\\Reilly^Ann',
  'NTE|1|L|5 mg\\F\\day for a week'].join('\r') })
const name = given.get('PID.5.1').toString()
const note = given.get('NTE.3').toString()
console.log(`read: ${name} / ${note}`)

const copy = new Message({ messageHeader: { msh_9_1: 'ORU', msh_9_2: 'R01', msh_10: '2', msh_11_1: 'P' } })
copy.addSegment('PID').set('5.1', name)
copy.addSegment('NTE').set('3', note)
const written = copy.toString()
console.log(`written: ${written.split('\r').slice(1).join(' / ')}`)
const next = new Message({ text: written })
console.log(`read again: ${next.get('PID.5.1').toString()} / ${next.get('NTE.3').toString()}`)
END
node read.mjs | tee seen
diff seen - <<'END'
read: O&Reilly / 5 mg|day for a week
written: PID|||||O&Reilly / NTE|||5 mg|day for a week
read again: O / 5 mg
END
