#!/usr/bin/env bash
# node-ofx-parser 0.5.1 (npm), Node 20: a statement of a bank in OFX writes an ampersand and a less sign in a name as &amp; and &lt; (OFX
# 1.0.2 and 2.2, 2.3.2.1). The reader gives them with further escapes in front, so that Smith & Co is Smith &amp;amp;amp; Co: neither the
# text nor the octets of the file, and no known way of escaping. A match of the name with an invoice fails, and no error is set. ofx-js
# 1.1.1 gives what OFX says. A program that sends payments to Parley from such statements takes the other reader.
#
# Seen:
#   Smith Ltd: node-ofx-parser Smith Ltd, ofx-js Smith Ltd
#   Smith &amp; Co: node-ofx-parser Smith &amp;amp;amp; Co, ofx-js Smith & Co
#   paid &lt; 5: node-ofx-parser paid &amp;amp;lt; 5, ofx-js paid < 5
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts node-ofx-parser@0.5.1 ofx-js@1.1.1
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const first = require('node-ofx-parser')
const second = require('ofx-js')
const HEAD = ['OFXHEADER:100', 'DATA:OFXSGML', 'VERSION:102', 'SECURITY:NONE', 'ENCODING:USASCII', 'CHARSET:1252',
  'COMPRESSION:NONE', 'OLDFILEUID:NONE', 'NEWFILEUID:NONE', '', ''].join('\r\n')
for (const name of ['Smith Ltd', 'Smith &amp; Co', 'paid &lt; 5']) {
  const file = `${HEAD}<OFX><BANKTRANLIST><STMTTRN><TRNTYPE>DEBIT<TRNAMT>-5.00<FITID>1<NAME>${name}</STMTTRN></BANKTRANLIST></OFX>`
  const one = first.parse(file).OFX.BANKTRANLIST.STMTTRN.NAME
  const two = (await second.parse(file)).OFX.BANKTRANLIST.STMTTRN.NAME
  console.log(`${name}: node-ofx-parser ${one}, ofx-js ${two}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
Smith Ltd: node-ofx-parser Smith Ltd, ofx-js Smith Ltd
Smith &amp; Co: node-ofx-parser Smith &amp;amp;amp; Co, ofx-js Smith & Co
paid &lt; 5: node-ofx-parser paid &amp;amp;lt; 5, ofx-js paid < 5
END
