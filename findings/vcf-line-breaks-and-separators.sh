#!/usr/bin/env bash
# vcf 2.1.2 (npm), Node 20: it neither undoes nor writes the escapes of vCard (RFC 6350, 3.4). A line break in a note is gone when the card is written. In the
# jCard that it gives (RFC 7095, 3.3.1.3) the texts hold backslashes, and a name with a semicolon has two parts. A colon in quotes ends a parameter (RFC
# 6350, 3.3), so that the rest of a label stands in the address. No error is set. ical.js 2.2.1 reads the same card as the RFC says.
#
# Seen:
#   n: vcf ["Lee\\"," Smith","Kim","","",""], ical.js ["Lee; Smith","Kim","","",""]
#   note: vcf "one\\ntwo", ical.js "one\ntwo"
#   adr: vcf [" 1\":","","Main St","York","","",""], ical.js ["","","Main St","York","","",""]
#   written: NOTE:onetwo; three
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts vcf@2.1.2 ical.js@2.2.1
cat > read.mjs <<'END'
import ICAL from 'ical.js'
import VCard from 'vcf'

const card = ['BEGIN:VCARD', 'VERSION:4.0', 'FN:Kim Lee', 'N:Lee\\; Smith;Kim;;;', 'NOTE:one\\ntwo',
  'ADR;LABEL="Main: 1":;;Main St;York;;;', 'END:VCARD', ''].join('\r\n')
const show = (properties, name) => JSON.stringify(properties.find((p) => p[0] === name)[3])
const theirs = VCard.parse(card)[0].toJSON()[1]
const standard = ICAL.parse(card)[1]
for (const name of ['n', 'note', 'adr']) console.log(`${name}: vcf ${show(theirs, name)}, ical.js ${show(standard, name)}`)

const made = new VCard()
made.set('fn', 'Kim Lee')
made.set('note', 'one\ntwo; three')
console.log(`written: ${made.toString('4.0').split('\n').find((line) => line.startsWith('NOTE')).trim()}`)
END
node read.mjs | tee seen
diff seen - <<'END'
n: vcf ["Lee\\"," Smith","Kim","","",""], ical.js ["Lee; Smith","Kim","","",""]
note: vcf "one\\ntwo", ical.js "one\ntwo"
adr: vcf [" 1\":","","Main St","York","","",""], ical.js ["","","Main St","York","","",""]
written: NOTE:onetwo; three
END
