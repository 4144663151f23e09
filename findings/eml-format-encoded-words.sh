#!/usr/bin/env bash
# eml-format 0.6.1 (npm), Node 20: a long subject with letters beyond ASCII comes in several encoded words (RFC 2047, 2: at most 75
# characters each). The reader keeps the first one and leaves out the rest, also plain words behind it. An underscore in an encoded word is
# a blank (4.2); it stays one in the name of a sender. The octets of a message that is attached have the last boundary at their end (RFC
# 2046, 5.1.1). No error is set. Python 3.11 gives what the RFCs say. Mail is read by Parley's own reader, and such a package gets the
# decoded fields alone.
#
# Seen:
#   eml-format: ["Kim_Lée","Invoice_Müller_","Subject: inner\r\n\r\ntext\r\n--b--\r\n"]
#   Python: ["Kim Lée","Invoice Müller of March final","Subject: inner\r\n\r\ntext"]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts eml-format@0.6.1
python3 - > message.eml <<'END'
print("From: =?utf-8?q?Kim_L=C3=A9e?= <kim@example.net>", "Subject: =?utf-8?q?Invoice_M=C3=BCller_?=", " =?utf-8?q?of_March?= final",
      "MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="b"', "", "--b", "Content-Type: text/plain", "", "see below", "--b",
      "Content-Type: message/rfc822", "", "Subject: inner", "", "text", "--b--", sep="\r\n")
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

createRequire(import.meta.url)('eml-format').read(readFileSync('message.eml', 'utf8'), (error, message) => {
  if (error) throw error
  console.log(`eml-format: ${JSON.stringify([message.from.name, message.subject, message.attachments[0].data])}`)
})
END
cat > read.py <<'END'
import json
from email import message_from_binary_file, policy

with open("message.eml", "rb") as file:
    message = message_from_binary_file(file, policy=policy.default)
inner = next(message.iter_attachments()).get_content().as_string()
fields = [message["from"].addresses[0].display_name, str(message["subject"]), inner.replace("\n", "\r\n").strip()]
print("Python:", json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
END
{ node read.mjs; python3 read.py; } | tee seen
diff seen - <<'END'
eml-format: ["Kim_Lée","Invoice_Müller_","Subject: inner\r\n\r\ntext\r\n--b--\r\n"]
Python: ["Kim Lée","Invoice Müller of March final","Subject: inner\r\n\r\ntext"]
END
