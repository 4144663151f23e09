#!/usr/bin/env bash
# com.cronutils:cron-utils 9.2.1, beside org.quartz-scheduler:quartz 2.5.0 (Maven), Java 17: in an expression of Quartz a range may run over the
# end, such as 22-2 for the hours around midnight and NOV-FEB for the winter (Quartz, CronTrigger tutorial, notes). With its definition of
# Quartz cron-utils takes both, and gives the first value of the range alone: four of five hours and three of four months never come. A range
# of days of the week over the end, SAT-MON, comes right. No error is set, and validate passes. Work for the night so runs once, at ten in the
# evening.
#
# Seen:
#   0 0 22-2 * * ?: Quartz 5 times, cron-utils 1 time
#   0 0 12 1 NOV-FEB ?: Quartz 4 times, cron-utils 1 time
#   0 0 12 ? * SAT-MON: Quartz 156 times, cron-utils 156 times
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId>
  <artifactId>example</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>com.cronutils</groupId><artifactId>cron-utils</artifactId><version>9.2.1</version></dependency>
    <dependency><groupId>org.quartz-scheduler</groupId><artifactId>quartz</artifactId><version>2.5.0</version></dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode --color never dependency:copy-dependencies -DoutputDirectory=jars
cat > Read.java <<'END'
import com.cronutils.model.Cron;
import com.cronutils.model.CronType;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Date;
import java.util.TimeZone;
import org.quartz.CronExpression;

public class Read {
    static final ZonedDateTime BEGIN = ZonedDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);

    static int inQuartz(String text, ZonedDateTime end) throws Exception {
        CronExpression expression = new CronExpression(text);
        expression.setTimeZone(TimeZone.getTimeZone("UTC"));
        int count = 0;
        Date time = Date.from(BEGIN.minusSeconds(1).toInstant());
        while ((time = expression.getNextValidTimeAfter(time)).before(Date.from(end.toInstant()))) count++;
        return count;
    }

    static int inCronUtils(String text, ZonedDateTime end) {
        Cron cron = new CronParser(CronDefinitionBuilder.instanceDefinitionFor(CronType.QUARTZ)).parse(text).validate();
        ExecutionTime times = ExecutionTime.forCron(cron);
        int count = 0;
        ZonedDateTime time = BEGIN.minusSeconds(1);
        while ((time = times.nextExecution(time).get()).isBefore(end)) count++;
        return count;
    }

    static String times(int count) {
        return count + (count == 1 ? " time" : " times");
    }

    static void show(String text, ZonedDateTime end) throws Exception {
        System.out.println(text + ": Quartz " + times(inQuartz(text, end)) + ", cron-utils " + times(inCronUtils(text, end)));
    }

    public static void main(String[] given) throws Exception {
        show("0 0 22-2 * * ?", BEGIN.plusDays(1));
        show("0 0 12 1 NOV-FEB ?", BEGIN.plusYears(1));
        show("0 0 12 ? * SAT-MON", BEGIN.plusYears(1));
    }
}
END
java -cp 'jars/*' Read.java 2> errors | tee seen
diff seen - <<'END'
0 0 22-2 * * ?: Quartz 5 times, cron-utils 1 time
0 0 12 1 NOV-FEB ?: Quartz 4 times, cron-utils 1 time
0 0 12 ? * SAT-MON: Quartz 156 times, cron-utils 156 times
END
