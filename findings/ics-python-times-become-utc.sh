#!/usr/bin/env bash
# ics 0.7.3 (PyPI), Python 3.11: an iCalendar event that is read and written has other times. The begin in a named zone is written in UTC while RRULE and EXDATE
# stay, so a weekly meeting moves by an hour when the clock changes, and the date that was left out is held (RFC 5545, 3.8.5.1 and 3.8.5.3). A
# begin without a zone, the same on each clock (3.3.5, form 1), becomes UTC. icalendar 7.3.0 and python-dateutil 2.9.0 give what RFC 5545 says.
#
# Seen:
#   read:    DTSTART;TZID=Europe/Berlin:20260325T090000 in Berlin at 25 09:00, 08 09:00
#   written: DTSTART:20260325T080000Z in Berlin at 25 09:00, 01 10:00, 08 10:00
#   read:    DTSTART:20260325T090000
#   written: DTSTART:20260325T090000Z
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ics==0.7.3 icalendar==7.3.0 python-dateutil==2.9.0.post0
cat > read.py <<'END'
from zoneinfo import ZoneInfo

import icalendar
import ics
from dateutil.rrule import rrulestr

EVENT = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:example
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
{}
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")
WEEKLY = "DTSTART;TZID=Europe/Berlin:20260325T090000\r\nRRULE:FREQ=WEEKLY;COUNT=3\r\nEXDATE;TZID=Europe/Berlin:20260401T090000"


def begin(text):
    return next(line for line in text.splitlines() if line.startswith("DTSTART"))


def times(text):
    event = icalendar.Calendar.from_ical(text).walk("VEVENT")[0]
    at = event["DTSTART"].dt
    left_out = [date.dt for date in event["EXDATE"].dts]
    every = rrulestr(event["RRULE"].to_ical().decode(), dtstart=at)
    kept = [time.astimezone(ZoneInfo("Europe/Berlin")) for time in every if time not in left_out]
    return "in Berlin at " + ", ".join(time.strftime("%d %H:%M") for time in kept)


text = EVENT.format(WEEKLY)
written = ics.Calendar(text).serialize()
assert "RRULE:FREQ=WEEKLY;COUNT=3" in written and "EXDATE;TZID=Europe/Berlin:20260401T090000" in written
print("read:   ", begin(text), times(text))
print("written:", begin(written), times(written))
text = EVENT.format("DTSTART:20260325T090000")
print("read:   ", begin(text))
print("written:", begin(ics.Calendar(text).serialize()))
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
read:    DTSTART;TZID=Europe/Berlin:20260325T090000 in Berlin at 25 09:00, 08 09:00
written: DTSTART:20260325T080000Z in Berlin at 25 09:00, 01 10:00, 08 10:00
read:    DTSTART:20260325T090000
written: DTSTART:20260325T090000Z
END
