#!/usr/bin/env bash
# flufl.bounce 6.0.0 (PyPI, Mailman's bounce reader), Python 3.11: a report of RFC 6533 names an internationalized recipient with the address type utf-8.
# The reader knows rfc822 alone, so the same failure is no bounce at all and the address stays on the list. The address here is plain ASCII
# as that RFC allows.
#
# Seen:
#   rfc822: [b'kim@example.net']
#   utf-8: []
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check flufl.bounce==6.0.0
cat > read.py <<'END'
from email import message_from_string

from flufl.bounce import scan_message

for kind in ("rfc822", "utf-8"):
    report = message_from_string(f"""\
From: MAILER-DAEMON@mx.example.org
To: list-bounces@example.com
Subject: Delivery Status Notification (Failure)
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=part

--part
Content-Type: text/plain

The mailbox does not exist.
--part
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: {kind}; kim@example.net
Action: failed
Status: 5.1.1

--part--
""")
    print(f"{kind}: {sorted(scan_message(report))}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
rfc822: [b'kim@example.net']
utf-8: []
END
