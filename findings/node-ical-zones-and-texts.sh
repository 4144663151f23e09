#!/usr/bin/env bash
# node-ical 0.27.2 (npm), Node 20: a calendar brings the rules of its zones with it (RFC 5545, 3.6.5), also of zones with names of their
# own, which servers and older programs write. The reader passes over them, takes the zone of the process for such times, and names the zone
# as if it had been used. An escaped backslash before an n (3.3.11) becomes a backslash and a line break, and a semicolon in the quotes of a
# parameter (3.2) ends it. No error is set. ical.js 2.2.1 gives what the RFC says. Times for Parley are taken from ical.js with the
# calendar's own zones.
#
# Seen:
#   node-ical: 2026-07-01T09:00:00.000Z ["Plant 4","C:\\\new","\"Lee"]
#   ical.js: 2026-07-01T07:00:00.000Z ["Plant 4","C:\\new","Lee; Kim"]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts node-ical@0.27.2 ical.js@2.2.1
cat > read.mjs <<'END'
import ICAL from 'ical.js'
import nodeIcal from 'node-ical'

const half = (kind, from, to, begin) => [`BEGIN:${kind}`, `DTSTART:${begin}T020000`,
  `RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=${begin.slice(4, 6)}`, `TZOFFSETFROM:${from}`, `TZOFFSETTO:${to}`, `END:${kind}`]
const text = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:example', 'BEGIN:VTIMEZONE', 'TZID:Plant 4',
  ...half('STANDARD', '+0200', '+0100', '20001029'), ...half('DAYLIGHT', '+0100', '+0200', '20000326'), 'END:VTIMEZONE',
  'BEGIN:VEVENT', 'UID:1', 'DTSTAMP:20260101T000000Z', 'DTSTART;TZID=Plant 4:20260701T090000', 'SUMMARY:C:\\\\new',
  'ATTENDEE;CN="Lee; Kim":mailto:kim@example.net', 'END:VEVENT', 'END:VCALENDAR', ''].join('\r\n')
const show = (name, start, ...rest) => console.log(`${name}: ${start.toISOString()} ${JSON.stringify(rest)}`)

const one = Object.values(nodeIcal.parseICS(text)).find((part) => part.type === 'VEVENT')
show('node-ical', one.start, one.start.tz, one.summary, one.attendee.params.CN)

const calendar = new ICAL.Component(ICAL.parse(text))
const event = calendar.getFirstSubcomponent('vevent')
const start = event.getFirstPropertyValue('dtstart')
show('ical.js', start.toJSDate(), start.zone.tzid, event.getFirstPropertyValue('summary'),
  event.getFirstProperty('attendee').getParameter('cn'))
END
TZ=UTC node read.mjs | tee seen
diff seen - <<'END'
node-ical: 2026-07-01T09:00:00.000Z ["Plant 4","C:\\\new","\"Lee"]
ical.js: 2026-07-01T07:00:00.000Z ["Plant 4","C:\\new","Lee; Kim"]
END
