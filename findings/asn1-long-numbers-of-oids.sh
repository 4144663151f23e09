#!/usr/bin/env bash
# asn1 0.2.6 and asn1.js 5.4.1 (npm), Node 20, beside pyasn1 0.6.1 (PyPI), Python 3.11: a number in an object identifier has no upper limit
# (X.660, and X.690, 8.19), and an identifier made of a UUID has one of up to 128 bits below 2.25 (X.667). Both packages keep the last 32
# bits: asn1 reads another identifier, below zero at times, and asn1.js also writes one. The first octets hold two numbers together, and
# below 2 the second may be 48 and more (8.19.4; 2.999.3 is the example of 8.19.5): asn1 takes 2.999 for 26.39. asn1.js refuses 2.999. No
# error is set for the rest. Two schemas that are told apart by such identifiers become one.
#
# Seen:
#   2.999.3: asn1 reads 26.39.3
#   2.25.4294967297: asn1 reads 2.25.1, asn1.js reads 2.25.1 and writes 2.25.1
#   2.25.329800735698586629295641978511506172918: asn1 reads 2.25.-920753162
#   1.3.6.1.4.1.32473: asn1 reads 1.3.6.1.4.1.32473, asn1.js reads 1.3.6.1.4.1.32473 and writes 1.3.6.1.4.1.32473
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyasn1==0.6.1
npm install --silent --no-fund --no-audit --ignore-scripts asn1@0.2.6 asn1.js@5.4.1
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { Ber } = require('asn1')
const Identifier = require('asn1.js').define('Identifier', function () {
  this.objid()
})
const [name, text, hex] = process.argv.slice(2)
const octets = Buffer.from(hex, 'hex')
if (name === 'asn1') console.log(new Ber.Reader(octets).readOID())
if (name === 'asn1.js') console.log(Identifier.decode(octets, 'der').join('.'))
if (name === 'written') console.log(Identifier.encode(text.split('.').map(Number), 'der').toString('hex'))
END
cat > read.py <<'END'
import subprocess

from pyasn1.codec.der.decoder import decode
from pyasn1.codec.der.encoder import encode
from pyasn1.type.univ import ObjectIdentifier


def other(name, text):
    octets = encode(ObjectIdentifier(text)).hex()
    return subprocess.run(["node", "read.mjs", name, text, octets], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


for text in ("2.999.3", "2.25.4294967297", "2.25.329800735698586629295641978511506172918", "1.3.6.1.4.1.32473"):
    line = f"{text}: asn1 reads {other('asn1', text)}"
    if len(text) < 20 and "999" not in text:
        written, _ = decode(bytes.fromhex(other("written", text)))
        line += f", asn1.js reads {other('asn1.js', text)} and writes {written}"
    print(line)
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
2.999.3: asn1 reads 26.39.3
2.25.4294967297: asn1 reads 2.25.1, asn1.js reads 2.25.1 and writes 2.25.1
2.25.329800735698586629295641978511506172918: asn1 reads 2.25.-920753162
1.3.6.1.4.1.32473: asn1 reads 1.3.6.1.4.1.32473, asn1.js reads 1.3.6.1.4.1.32473 and writes 1.3.6.1.4.1.32473
END
