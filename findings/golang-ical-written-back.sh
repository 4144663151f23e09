#!/usr/bin/env bash
# github.com/arran4/golang-ical v0.3.4, Go 1.26: of a calendar that is read and written with nothing changed a parameter in quotes has
# backslashes in place of the quotes. RFC 5545 has no backslash there (3.2): the next reader ends the parameter at the first colon, and the
# address of the attendee is gone. The commas between categories (3.8.1.2) are escaped, so that two become one. No error is set. ical.js
# 2.2.1 (npm), Node 20, reads both. A sender of invitations by Parley sends the octets that came, or checks them with another reader.
#
# Seen:
#   given: ["Sales: Lee, Kim","mailto:kim@example.net",["order","paid"]]
#   written: ["Sales\\"," Lee\\, Kim:mailto:kim@example.net",["order,paid"]]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts ical.js@2.2.1
cat > go.mod <<'END'
module example
go 1.24
require github.com/arran4/golang-ical v0.3.4
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	ics "github.com/arran4/golang-ical"
)

func main() {
	calendar, err := ics.ParseCalendar(os.Stdin)
	if err != nil {
		panic(err)
	}
	fmt.Print(calendar.Serialize())
}
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import ICAL from 'ical.js'

for (const name of ['given', 'written']) {
  const event = new ICAL.Component(ICAL.parse(readFileSync(name, 'utf8'))).getFirstSubcomponent('vevent')
  const attendee = event.getFirstProperty('attendee')
  const values = [attendee.getParameter('cn'), attendee.getFirstValue(), event.getFirstProperty('categories').getValues()]
  console.log(`${name}: ${JSON.stringify(values)}`)
}
END
printf '%s\r\n' BEGIN:VCALENDAR VERSION:2.0 PRODID:example BEGIN:VEVENT UID:1 DTSTAMP:20260101T000000Z DTSTART:20260101T090000Z \
  'ATTENDEE;CN="Sales: Lee, Kim":mailto:kim@example.net' CATEGORIES:order,paid END:VEVENT END:VCALENDAR > given
export GOFLAGS=-mod=mod
go run . < given > written
node read.mjs | tee seen
diff seen - <<'END'
given: ["Sales: Lee, Kim","mailto:kim@example.net",["order","paid"]]
written: ["Sales\\"," Lee\\, Kim:mailto:kim@example.net",["order,paid"]]
END
