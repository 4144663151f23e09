#!/usr/bin/env bash
# rhea 3.0.5 (npm, the usual client of AMQP 1.0), Node 20: a message id may be binary (AMQP 1.0, part 3, 3.2). rhea gives such an id as a Buffer, and writes any Buffer
# as a uuid of 16 octets: a longer one is cut and a shorter one filled with zeros. A responder that copies the id of a request into its
# correlation id, as is usual, so answers nobody, and two ids that differ at their end become one. No error is set.
#
# Seen:
#   request:  51554555452e4d4752202020000000000000000000000001
#   answer:   51554555452e4d475220202000000000
#   wrapped:  51554555452e4d4752202020000000000000000000000001
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts rhea@3.0.5
cat > read.mjs <<'END'
import rhea from 'rhea'

const { message, types } = rhea
const sent = (fields) => message.decode(message.encode(fields))
const id = Buffer.from('51554555452e4d4752202020000000000000000000000001', 'hex')
// As a client in another language sends it.
const request = sent({ message_id: types.wrap_binary(id), body: 'a' })
console.log(`request:  ${request.message_id.toString('hex')}`)
console.log(`answer:   ${sent({ correlation_id: request.message_id, body: 'b' }).correlation_id.toString('hex')}`)
const wrapped = sent({ correlation_id: types.wrap_binary(request.message_id), body: 'b' })
console.log(`wrapped:  ${wrapped.correlation_id.toString('hex')}`)
END
node read.mjs | tee seen
diff seen - <<'END'
request:  51554555452e4d4752202020000000000000000000000001
answer:   51554555452e4d475220202000000000
wrapped:  51554555452e4d4752202020000000000000000000000001
END
