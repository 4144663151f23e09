#!/usr/bin/env bash
# edifact 1.2.12 (npm), Node 20: its parser takes an interchange in pieces, as a stream gives them. Where a piece ends behind a release character (ISO 9735,
# UNA), the character after it is read as a separator. A text is then split into two elements, or runs on over the end of its segment, and the
# segment behind it is gone. No error is set. Whether it happens depends on where the network cut the same interchange.
#
# Seen:
#   whole: FTX AAI|||10+5: ok? / UNT
#   cut at 10?|+5: FTX AAI|||10|5: ok? / UNT
#   cut at ok?|?: FTX AAI|||10+5: ok'UNT|3|1 / UNZ
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts edifact@1.2.12
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const Parser = createRequire(import.meta.url)('edifact/parser.js')
const interchange = "UNA:+.? 'UNB+UNOB:1+S+R+260101:1200+1'UNH+1+ORDERS:D:96A:UN'FTX+AAI+++10?+5?: ok??'UNT+3+1'UNZ+1+1'"

function read(...pieces) {
  const segments = []
  const parser = new Parser()
  parser.encoding('UNOB')
  parser.onopensegment = (name) => segments.push({ name, elements: [] })
  parser.onelement = () => segments.at(-1).elements.push([])
  parser.oncomponent = (text) => segments.at(-1).elements.at(-1).push(text)
  for (const piece of pieces) parser.write(piece)
  parser.end()
  const [text, next] = segments.slice(2)
  return `${text.name} ${text.elements.map((e) => e.join(' : ')).join('|')} / ${next.name}`
}

console.log(`whole: ${read(interchange)}`)
for (const cut of ['10?|+5', 'ok?|?']) {
  const at = interchange.indexOf(cut.replace('|', '')) + cut.indexOf('|')
  console.log(`cut at ${cut}: ${read(interchange.slice(0, at), interchange.slice(at))}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
whole: FTX AAI|||10+5: ok? / UNT
cut at 10?|+5: FTX AAI|||10|5: ok? / UNT
cut at ok?|?: FTX AAI|||10+5: ok'UNT|3|1 / UNZ
END
