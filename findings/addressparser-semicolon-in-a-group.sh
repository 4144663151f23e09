#!/usr/bin/env bash
# addressparser 1.0.1 and emailjs-addressparser 2.0.3 (npm), Node 20: in a group of addresses a semicolon in quotes or in a comment ends the group (it does not by
# RFC 5322, 3.4, 3.2.2 and 3.2.4). In quotes it parts a member from its address, and the member behind it is gone. In a comment it leaves a
# member without an address. An address with an IPv6 literal (3.4.1) is none at all. No error is set. Python 3.11 gives what RFC 5322 says.
#
# Seen:
#   Team: Kim Lee <kim@example.net>, ada@example.net;
#     Node kim@example.net, ada@example.net; Python kim@example.net, ada@example.net
#   Team: "Lee; Kim" <kim@example.net>, ada@example.net;
#     Node none, kim@example.net; Python kim@example.net, ada@example.net
#   Team: kim@example.net (sales; east), ada@example.net;
#     Node kim@example.net, none, ada@example.net; Python kim@example.net, ada@example.net
#   kim@[IPv6:2001:db8::1]
#     Node none; Python kim@[IPv6:2001:db8::1]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts addressparser@1.0.1 emailjs-addressparser@2.0.3
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const flat = (found) => found.flatMap((entry) => (entry.group ? flat(entry.group) : [entry.address || 'none']))
for (const text of process.argv.slice(2)) {
  const [first, second] = [require('addressparser'), require('emailjs-addressparser').default].map((f) => flat(f(text)).join(', '))
  console.log(first === second ? first : `${first} / ${second}`)
}
END
cat > read.py <<'END'
import subprocess
from email.headerregistry import HeaderRegistry

FIELDS = (
    "Team: Kim Lee <kim@example.net>, ada@example.net;",
    'Team: "Lee; Kim" <kim@example.net>, ada@example.net;',
    "Team: kim@example.net (sales; east), ada@example.net;",
    "kim@[IPv6:2001:db8::1]",
)
node = subprocess.run(["node", "read.mjs", *FIELDS], capture_output=True, text=True, check=True).stdout.splitlines()
for field, found in zip(FIELDS, node, strict=True):
    standard = ", ".join(address.addr_spec for address in HeaderRegistry()("To", field).addresses)
    print(f"{field}\n  Node {found}; Python {standard}")
END
python3 read.py | tee seen
diff seen - <<'END'
Team: Kim Lee <kim@example.net>, ada@example.net;
  Node kim@example.net, ada@example.net; Python kim@example.net, ada@example.net
Team: "Lee; Kim" <kim@example.net>, ada@example.net;
  Node none, kim@example.net; Python kim@example.net, ada@example.net
Team: kim@example.net (sales; east), ada@example.net;
  Node kim@example.net, none, ada@example.net; Python kim@example.net, ada@example.net
kim@[IPv6:2001:db8::1]
  Node none; Python kim@[IPv6:2001:db8::1]
END
