#!/usr/bin/env bash
# cloudevents 10.0.0 (npm, the project's own SDK), Node 20: binary data of an event in structured mode (data_base64) is read as a Uint32Array with one
# element of 32 bits for each octet. Whoever writes it to a file or hashes its buffer has four times the octets, most of them zero. The sender
# gave a Uint8Array of three octets.
#
# Seen:
#   sent: Uint8Array, 3 octets
#   read: Uint32Array, 12 octets: 01000000 02000000 ff000000
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts cloudevents@10.0.0
cat > read.mjs <<'END'
import { CloudEvent, HTTP } from 'cloudevents'

const sent = new Uint8Array([1, 2, 255])
const event = new CloudEvent({ type: 'example.file', source: '/example', datacontenttype: 'application/octet-stream', data: sent })
const { data } = HTTP.toEvent(HTTP.structured(event))
console.log(`sent: ${sent.constructor.name}, ${sent.byteLength} octets`)
const octets = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('hex').match(/.{8}/g).join(' ')
console.log(`read: ${data.constructor.name}, ${data.byteLength} octets: ${octets}`)
END
node read.mjs | tee seen
diff seen - <<'END'
sent: Uint8Array, 3 octets
read: Uint32Array, 12 octets: 01000000 02000000 ff000000
END
