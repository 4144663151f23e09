#!/usr/bin/env bash
# org.dmfs:lib-recur 0.17.1 (Maven), Java 17, beside python-dateutil 2.9.0 (PyPI), Python 3.11: a year has 53 weeks by ISO 8601 only where
# it begins or ends on a Thursday, and a rule for week number 53 comes in such years alone (RFC 5545, 3.3.10, BYWEEKNO, note). With a day of
# the week lib-recur gives one day in each year: it lies in week 52, or in week 1 of the next year. The same rule without a day is right,
# and so is week 52. No error is set. Work of a fiscal year's extra week so runs each year.
#
# Seen:
#   FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH: 2026-12-31 W53, 2027-12-30 W52, 2029-01-03 W1, 2030-01-02 W1
#   FREQ=YEARLY;BYWEEKNO=53: 2026-12-31 W53, 2032-12-30 W53, 2037-12-31 W53, 2043-12-31 W53
#   dateutil, FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH: 2026-12-31 W53, 2032-12-30 W53, 2037-12-31 W53, 2043-12-31 W53
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check python-dateutil==2.9.0
cat > pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>example</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.dmfs</groupId><artifactId>lib-recur</artifactId><version>0.17.1</version></dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode --color never dependency:copy-dependencies -DoutputDirectory=jars
cat > Read.java <<'END'
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.time.temporal.IsoFields;
import java.util.StringJoiner;
import org.dmfs.rfc5545.DateTime;
import org.dmfs.rfc5545.recur.RecurrenceRule;
import org.dmfs.rfc5545.recur.RecurrenceRuleIterator;

public class Read {
    public static void main(String[] rules) throws Exception {
        for (String rule : rules) {
            RecurrenceRuleIterator days = new RecurrenceRule(rule).iterator(DateTime.parse("20261231"));
            StringJoiner seen = new StringJoiner(", ");
            for (int i = 0; i < 4; i++) {
                LocalDate day = LocalDate.parse(days.nextDateTime().toString(), DateTimeFormatter.BASIC_ISO_DATE);
                seen.add(day + " W" + day.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR));
            }
            System.out.println(rule + ": " + seen);
        }
    }
}
END
cat > read.py <<'END'
from datetime import datetime

from dateutil.rrule import rrulestr

rule = "FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH"
days = rrulestr(f"{rule};COUNT=4", dtstart=datetime(2026, 12, 31))
print(f"dateutil, {rule}: {', '.join(f'{day:%Y-%m-%d} W{day.isocalendar().week}' for day in days)}")
END
{
  java -cp 'jars/*' Read.java 'FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH' 'FREQ=YEARLY;BYWEEKNO=53'
  venv/bin/python read.py
} | tee seen
diff seen - <<'END'
FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH: 2026-12-31 W53, 2027-12-30 W52, 2029-01-03 W1, 2030-01-02 W1
FREQ=YEARLY;BYWEEKNO=53: 2026-12-31 W53, 2032-12-30 W53, 2037-12-31 W53, 2043-12-31 W53
dateutil, FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH: 2026-12-31 W53, 2032-12-30 W53, 2037-12-31 W53, 2043-12-31 W53
END
