#!/usr/bin/env bash
# mailparser 3.14.2 (npm, nodemailer's reader), Node 20: a message whose Date has an old zone of one letter, legal by RFC 5322 4.3 (obs-zone),
# has the time of reading as its date; so has one whose zone is a name that JavaScript does not know, such as CEST, and one with an empty Date.
# A program that sorts or expires mail by this date cannot tell it from a real one: the field is a Date like any other, and no error is set.
#
# Seen:
#   Wed, 17 Nov 2010 15:02:19 EST -> 2010-11-17T20:02:19.000Z
#   Wed, 17 Nov 2010 15:02:19 K -> the time of reading
#   Wed, 17 Nov 2010 15:02:19 CEST -> the time of reading
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts mailparser@3.14.2
cat > read.mjs <<'END'
import { simpleParser } from 'mailparser'

let isAsSeen = true
for (const [zone, isNow] of [['EST', false], ['K', true], ['CEST', true]]) {
  const written = `Wed, 17 Nov 2010 15:02:19 ${zone}`
  const { date } = await simpleParser(`Date: ${written}\r\nSubject: a\r\n\r\nx\r\n`)
  const isRead = Math.abs(Date.now() - date) < 60_000
  console.log(`${written} -> ${isRead ? 'the time of reading' : date.toISOString()}`)
  isAsSeen &&= isRead === isNow
}
process.exit(isAsSeen ? 0 : 1)
END
node read.mjs
