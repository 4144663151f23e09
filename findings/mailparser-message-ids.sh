#!/usr/bin/env bash
# mailparser 3.14.2 (npm, nodemailer's reader), Node 20: a comment may follow a message id, and no blank has to stand between two (RFC 5322 3.6.4). Of the first
# mailparser makes part of the id, with a bracket added at the end, or an id of its own; the second it gives as one. So a reply finds no message
# with that id, and a thread or a ticket is torn. No error is set.
#
# Seen:
#   In-Reply-To: <a@x> (your order) -> "<a@x> (your order)>"
#   References: <a@x> (order) <b@x> -> ["<a@x>","<(order)>","<b@x>"]
#   References: <a@x><b@x> -> "<a@x><b@x>"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts mailparser@3.14.2
cat > read.mjs <<'END'
import { simpleParser } from 'mailparser'

for (const header of [
  'In-Reply-To: <a@x> (your order)',
  'References: <a@x> (order) <b@x>',
  'References: <a@x><b@x>',
]) {
  const { inReplyTo, references } = await simpleParser(`${header}\r\nSubject: Re: order\r\n\r\nYes.\r\n`)
  console.log(`${header} -> ${JSON.stringify(inReplyTo ?? references)}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
In-Reply-To: <a@x> (your order) -> "<a@x> (your order)>"
References: <a@x> (order) <b@x> -> ["<a@x>","<(order)>","<b@x>"]
References: <a@x><b@x> -> "<a@x><b@x>"
END
