#!/usr/bin/env bash
# iso8601-duration 2.1.4 (npm), Node 20: the pattern is not tied to the begin and the end of the text. A minus, which xs:duration allows (XML Schema part 2,
# 3.2.6, example -P120D), is dropped, so that a date moves the other way. A fraction of a day, which ISO 8601 allows in the last place,
# is dropped behind another part, and refused alone. tinyduration 3.4.1 reads both.
#
# Seen:
#   -P120D: 120 days, tinyduration -120 days
#   P1M1.5D: 1 month 0 days, tinyduration 1 month 1.5 days
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts iso8601-duration@2.1.4 tinyduration@3.4.1
cat > read.mjs <<'END'
import { parse } from 'iso8601-duration'
import { parse as parseOther } from 'tinyduration'

const told = ({ months, days, negative }) =>
  `${months ? `${months} month ` : ''}${negative ? '-' : ''}${days} days`
for (const text of ['-P120D', 'P1M1.5D']) {
  console.log(`${text}: ${told(parse(text))}, tinyduration ${told(parseOther(text))}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
-P120D: 120 days, tinyduration -120 days
P1M1.5D: 1 month 0 days, tinyduration 1 month 1.5 days
END
