#!/usr/bin/env bash
# mimetext 3.0.28 (npm, what programs on workers of the web build mail with), Node 20: a file name goes into quotes as it is. By MIME (RFC 2045, 5.1, and RFC 5322,
# 3.2.4) a quote and a backslash in it need a backslash before them. So the receiver, here Python 3.11 and postal-mime 4.0.0 (npm), has a name that
# ends at the first quote, without its extension, or one without the backslash. No error is set.
#
# Seen:
#   Plan B.txt: Python 'Plan B.txt', postal-mime 'Plan B.txt'
#   Plan "B".txt: Python 'Plan', postal-mime 'Plan'
#   Plan \ B.txt: Python 'Plan  B.txt', postal-mime 'Plan  B.txt'
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts mimetext@3.0.28 postal-mime@4.0.0
cat > write.mjs <<'END'
import { createMimeMessage } from 'mimetext'

const message = createMimeMessage()
message.setSender('kim@example.net')
message.setRecipient('lee@example.net')
message.setSubject('Plan')
message.addMessage({ contentType: 'text/plain', data: 'See the file.' })
message.addAttachment({ filename: process.argv[2], contentType: 'text/plain', data: Buffer.from('plan').toString('base64') })
process.stdout.write(message.asRaw())
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import PostalMime from 'postal-mime'

console.log((await PostalMime.parse(readFileSync(0))).attachments[0].filename)
END
cat > read.py <<'END'
import subprocess
from email import message_from_bytes
from email.policy import default

for name in ("Plan B.txt", 'Plan "B".txt', "Plan \\ B.txt"):
    message = subprocess.run(["node", "write.mjs", name], capture_output=True, check=True).stdout
    attachment = next(message_from_bytes(message, policy=default).iter_attachments())
    other = subprocess.run(["node", "read.mjs"], input=message, capture_output=True, check=True).stdout.decode().strip()
    print(f"{name}: Python '{attachment.get_filename()}', postal-mime '{other}'")
END
python3 read.py | tee seen
diff seen - <<'END'
Plan B.txt: Python 'Plan B.txt', postal-mime 'Plan B.txt'
Plan "B".txt: Python 'Plan', postal-mime 'Plan'
Plan \ B.txt: Python 'Plan  B.txt', postal-mime 'Plan  B.txt'
END
