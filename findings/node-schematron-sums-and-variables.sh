#!/usr/bin/env bash
# node-schematron 2.1.0 (npm) with fontoxpath 3.34.0, Node 20: xs:decimal is a binary number there, so that a rule of an invoice which
# compares a total with the sum of its lines refuses a right invoice: 0.10 and 0.20 are not 0.30. Decimals are exact (XPath and Functions
# 3.1, 4.2; XML Schema part 2, 3.2.3). A variable of let that selects several nodes holds one array in place of them (ISO/IEC 19757-3,
# 5.4.5), so that count gives 1. No error is set. elementpath 5.1.4 (PyPI), Python 3.11, gives what the standards say. Documents for Parley
# are checked by a processor of XSLT, or sums are compared in cents.
#
# Seen:
#   1.00 + 2.00 = 3.00: node-schematron right, count 1; elementpath right, count 2
#   0.10 + 0.20 = 0.30: node-schematron refused, count 1; elementpath right, count 2
#   19.99 + 5.01 + 0.07 = 25.07: node-schematron right, count 1; elementpath right, count 3
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts node-schematron@2.1.0 fontoxpath@3.34.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check elementpath==5.1.4
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const { Schema } = createRequire(import.meta.url)('node-schematron')
const schema = (rule) => Schema.fromString('<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2"><pattern>' +
  `<rule context="invoice">${rule}</rule></pattern></schema>`)
for (const [lines, total] of JSON.parse(process.argv[3])) {
  const document = `<invoice>${lines.map((line) => `<line>${line}</line>`).join('')}<total>${total}</total></invoice>`
  const failed = schema(`<assert test="${process.argv[2]}">sum</assert>`).validateString(document).length > 0
  const [count] = schema('<let name="lines" value="line"/><report test="true()"><value-of select="count($lines)"/></report>')
    .validateString(document)
  console.log(`node-schematron ${failed ? 'refused' : 'right'}, count ${count.message}`)
}
END
cat > read.py <<'END'
import json
import subprocess
from xml.etree import ElementTree

from elementpath import XPath2Parser, select

RULE = "xs:decimal(total) = sum(line/xs:decimal(.))"
INVOICES = ((["1.00", "2.00"], "3.00"), (["0.10", "0.20"], "0.30"), (["19.99", "5.01", "0.07"], "25.07"))
command = ["node", "read.mjs", RULE, json.dumps(INVOICES)]
results = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
for (lines, total), result in zip(INVOICES, results, strict=True):
    text = "".join(f"<line>{line}</line>" for line in lines)
    invoice = ElementTree.XML(f"<invoice>{text}<total>{total}</total></invoice>")
    right = select(invoice, RULE, parser=XPath2Parser)
    print(f"{' + '.join(lines)} = {total}: {result}; elementpath {'right' if right else 'refused'}, count {len(lines)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
1.00 + 2.00 = 3.00: node-schematron right, count 1; elementpath right, count 2
0.10 + 0.20 = 0.30: node-schematron refused, count 1; elementpath right, count 2
19.99 + 5.01 + 0.07 = 25.07: node-schematron right, count 1; elementpath right, count 3
END
