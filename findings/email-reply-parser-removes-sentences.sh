#!/usr/bin/env bash
# email-reply-parser 0.5.12 (PyPI), Python 3.11: the parser takes every text from a line that begins with On to a line that ends with wrote: for the
# head of a quotation, also over an empty line and several sentences, and removes it out of the middle of the reply. What follows stays, so that
# the reply reads as whole. A ticket that keeps the parsed text alone has lost an instruction.
#
# Seen:
#   Please ship it.
#   Thank you.
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check email-reply-parser==0.5.12
cat > read.py <<'END'
from email_reply_parser import EmailReplyParser

reply = """Please ship it.

On Friday the stock is counted, so cancel order 7.

The customer also wrote:
> not before Monday
Thank you.
"""
print(EmailReplyParser.parse_reply(reply))
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
Please ship it.
Thank you.
END
