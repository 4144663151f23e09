#!/usr/bin/env bash
# cloudevents 10.0.0 (npm, the project's own SDK), Node 20: an event whose data is 0, false, an empty text or null, sent in structured mode, is read
# with data undefined, as if it had none. The octets hold the value: the reader loses it. In binary mode 0 and false come through, so the
# same event differs by the mode that the sender happened to choose.
#
# Seen:
#   0: in the body yes, read in structured mode undefined, in binary mode 0
#   false: in the body yes, read in structured mode undefined, in binary mode false
#   1: in the body yes, read in structured mode 1, in binary mode 1
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts cloudevents@10.0.0
cat > read.mjs <<'END'
import { CloudEvent, HTTP } from 'cloudevents'

for (const data of [0, false, 1]) {
  const event = new CloudEvent({ type: 'example.count', source: '/example', datacontenttype: 'application/json', data })
  // As HTTP carries them: the body is text.
  const read = ({ headers, body }) => HTTP.toEvent({ headers, body: String(body) }).data
  const isThere = JSON.parse(HTTP.structured(event).body).data === data ? 'yes' : 'no'
  console.log(`${data}: in the body ${isThere}, read in structured mode ${read(HTTP.structured(event))}, ` +
    `in binary mode ${read(HTTP.binary(event))}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
0: in the body yes, read in structured mode undefined, in binary mode 0
false: in the body yes, read in structured mode undefined, in binary mode false
1: in the body yes, read in structured mode 1, in binary mode 1
END
