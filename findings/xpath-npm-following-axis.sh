#!/usr/bin/env bash
# xpath 0.0.34 (npm) with @xmldom/xmldom 0.8.11, Node 20: following:: from an element that has children gives these and nothing behind the element, and preceding::
# gives the element's ancestors too. By XPath 1.0 (2.2) both axes have neither descendants nor ancestors. @* counts declarations of namespaces as
# attributes (5.3), and 1. is no number (3.7). No error is set. lxml 6.1.3 (PyPI, libxml2) gives what the standard says.
#
# Seen:
#   string(//line[2]/following::line/@n): xpath '', libxml2 '3'
#   string(//line[2]/following::price): xpath '8', libxml2 '7'
#   count(//line[2]/preceding::*): xpath '3', libxml2 '2'
#   count(//line[2]/preceding::order): xpath '1', libxml2 '0'
#   count(/order/@*): xpath '2', libxml2 '1'
#   number("1."): xpath 'NaN', libxml2 '1'
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts xpath@0.0.34 @xmldom/xmldom@0.8.11
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lxml==6.1.3
cat > document.xml <<'END'
<order xmlns:p="urn:example" id="7"><line n="1"><price>9</price></line><line n="2"><price>8</price></line><line n="3"><price>7</price></line></order>
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import { DOMParser } from '@xmldom/xmldom'
import xpath from 'xpath'

const document = new DOMParser().parseFromString(readFileSync('document.xml', 'utf8'), 'text/xml')
for (const path of process.argv.slice(2)) console.log(String(xpath.select(path, document)))
END
cat > read.py <<'END'
import subprocess

from lxml import etree

PATHS = (
    "string(//line[2]/following::line/@n)",
    "string(//line[2]/following::price)",
    "count(//line[2]/preceding::*)",
    "count(//line[2]/preceding::order)",
    "count(/order/@*)",
    'number("1.")',
)
document = etree.parse("document.xml")
node = subprocess.run(["node", "read.mjs", *PATHS], capture_output=True, text=True, check=True).stdout.splitlines()
for path, found in zip(PATHS, node, strict=True):
    standard = document.xpath(path)
    shown = standard if isinstance(standard, str) else f"{standard:g}"
    print(f"{path}: xpath '{found}', libxml2 '{shown}'")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
string(//line[2]/following::line/@n): xpath '', libxml2 '3'
string(//line[2]/following::price): xpath '8', libxml2 '7'
count(//line[2]/preceding::*): xpath '3', libxml2 '2'
count(//line[2]/preceding::order): xpath '1', libxml2 '0'
count(/order/@*): xpath '2', libxml2 '1'
number("1."): xpath 'NaN', libxml2 '1'
END
