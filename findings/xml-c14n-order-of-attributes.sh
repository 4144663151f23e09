#!/usr/bin/env bash
# xml-c14n 0.0.6 (npm) with @xmldom/xmldom 0.8.11 (npm), Node 20, beside lxml 6.0.2 (PyPI), Python 3.11: canonical XML has one order of
# attributes, by the address of their namespace and then by the octets of their names (Canonical XML 1.0, 2.2, kept by Exclusive XML
# Canonicalization 1.0, 3). The package takes the prefix in place of the address, and puts small letters before capitals. xml:lang gets a
# declaration of its prefix, which the standard leaves out (2.3). So the hash of a right document is another one, and a signed order or
# invoice is refused by its receiver. No error is set. Documents with attributes in small letters and one prefix come out right.
#
# Seen:
#   names: <a id="2" Ref="1"></a>, right <a Ref="1" id="2"></a>
#   namespaces: <a xmlns:p="urn:b" xmlns:q="urn:a" p:n="1" q:n="2"></a>, right <a xmlns:p="urn:b" xmlns:q="urn:a" q:n="2" p:n="1"></a>
#   language: <a xmlns:xml="http://www.w3.org/XML/1998/namespace" xml:lang="en"></a>, right <a xml:lang="en"></a>
#   plain: <a id="1" n="2">text</a>, right <a id="1" n="2">text</a>
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lxml==6.0.2
npm install --silent --no-fund --no-audit --ignore-scripts xml-c14n@0.0.6 @xmldom/xmldom@0.8.11
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { DOMParser } = require('@xmldom/xmldom')
const canonicaliser = require('xml-c14n')().createCanonicaliser('http://www.w3.org/2001/10/xml-exc-c14n#')
const root = new DOMParser().parseFromString(process.argv[2], 'text/xml').documentElement
canonicaliser.canonicalise(root, (error, text) => {
  if (error) throw error
  console.log(text)
})
END
cat > read.py <<'END'
import subprocess

from lxml import etree

for name, document in {
    "names": '<a Ref="1" id="2"/>',
    "namespaces": '<a xmlns:p="urn:b" xmlns:q="urn:a" p:n="1" q:n="2"/>',
    "language": '<a xml:lang="en"/>',
    "plain": '<a n="2" id="1">text</a>',
}.items():
    process = subprocess.run(["node", "read.mjs", document], stdout=subprocess.PIPE, text=True, check=True)
    right = etree.tostring(etree.fromstring(document), method="c14n", exclusive=True).decode()
    print(f"{name}: {process.stdout.strip()}, right {right}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
names: <a id="2" Ref="1"></a>, right <a Ref="1" id="2"></a>
namespaces: <a xmlns:p="urn:b" xmlns:q="urn:a" p:n="1" q:n="2"></a>, right <a xmlns:p="urn:b" xmlns:q="urn:a" q:n="2" p:n="1"></a>
language: <a xmlns:xml="http://www.w3.org/XML/1998/namespace" xml:lang="en"></a>, right <a xml:lang="en"></a>
plain: <a id="1" n="2">text</a>, right <a id="1" n="2">text</a>
END
