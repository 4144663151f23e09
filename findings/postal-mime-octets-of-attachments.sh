#!/usr/bin/env bash
# postal-mime 4.0.0 (npm), Node 20: the octets of an attachment that is sent as text (7bit, 8bit, quoted-printable) are not those that were sent. Each CR LF
# becomes LF, and an LF is added at the end, though the last line break before a boundary belongs to the boundary (RFC 2046 5.1.1). A file of
# EDI or CSV so differs in length and in hash, and a detached signature over it fails. The same file in base64 is right.
#
# Seen:
#   7bit: 610a620a
#   quoted-printable: 610a620a
#   base64: 610d0a62
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts postal-mime@4.0.0
cat > read.mjs <<'END'
import PostalMime from 'postal-mime'

const file = 'a\r\nb'
for (const [encoding, body] of [['7bit', file], ['quoted-printable', file], ['base64', btoa(file)]]) {
  const { attachments } = await PostalMime.parse([
    'Subject: order', 'MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=part', '',
    '--part', 'Content-Type: text/plain', '', 'The order is attached.',
    '--part', 'Content-Type: application/edi-x12', 'Content-Disposition: attachment; filename=order.x12',
    `Content-Transfer-Encoding: ${encoding}`, '', body, '--part--', '',
  ].join('\r\n'))
  console.log(`${encoding}: ${Buffer.from(attachments[0].content).toString('hex')}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
7bit: 610a620a
quoted-printable: 610a620a
base64: 610d0a62
END
