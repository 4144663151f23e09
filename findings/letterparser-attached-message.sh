#!/usr/bin/env bash
# letterparser 0.1.8 (npm), Node 20: a message that is attached (message/rfc822, RFC 2046, 5.2.1) is no attachment there: its text is joined
# to that of the message, as if the sender had written it, and its sender and subject are gone. Of an attached file the name in filename*0
# and filename*1 (RFC 2231, 3) is passed over for the older one of Content-Type (RFC 2183, 2.3). A group in To gives addresses such as Team:
# ada@example.net (RFC 5322, 3.4). No error is set. Python 3.11 gives what the RFCs say. Mail is read by Parley's own reader, which keeps
# attached messages apart.
#
# Seen:
#   letterparser: text "Please pay this.\nYou owe 1000."
#     attachments a.pdf; to Team: ada@example.net, lee@example.net;
#   Python: text "Please pay this."
#     attachments Bill März.pdf, message/rfc822; to ada@example.net, lee@example.net
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts letterparser@0.1.8
python3 - > message.eml <<'END'
print("From: kim@example.net", "To: Team: ada@example.net, lee@example.net;", "Subject: complaint", "MIME-Version: 1.0",
      'Content-Type: multipart/mixed; boundary="b"', "", "--b", "Content-Type: text/plain", "", "Please pay this.", "--b",
      'Content-Type: application/pdf; name="a.pdf"', 
      "Content-Disposition: attachment; filename*0*=utf-8''Bill%20M%C3%A4rz; filename*1=.pdf",
      "Content-Transfer-Encoding: base64", "", "JVBERg==", "--b", "Content-Type: message/rfc822", "",
      "From: shop@example.net", "Subject: bill", "",
      "You owe 1000.", "--b--", "", sep="\r\n")
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const message = createRequire(import.meta.url)('letterparser').extract(readFileSync('message.eml', 'utf8'))
console.log(`letterparser: text ${JSON.stringify(message.text)}`)
console.log(`  attachments ${message.attachments.map((a) => a.filename).join(', ')}; to ${message.to.map((t) => t.address).join(', ')}`)
END
cat > read.py <<'END'
import json
from email import message_from_binary_file, policy

with open("message.eml", "rb") as file:
    message = message_from_binary_file(file, policy=policy.default)
print("Python: text", json.dumps(message.get_body().get_content().strip()))
attachments = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
print(f"  attachments {', '.join(attachments)}; to {', '.join(a.addr_spec for a in message['to'].addresses)}")
END
{ node read.mjs; python3 read.py; } | tee seen
diff seen - <<'END'
letterparser: text "Please pay this.\nYou owe 1000."
  attachments a.pdf; to Team: ada@example.net, lee@example.net;
Python: text "Please pay this."
  attachments Bill März.pdf, message/rfc822; to ada@example.net, lee@example.net
END
