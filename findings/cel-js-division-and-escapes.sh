#!/usr/bin/env bash
# cel-js 0.8.2 (npm), Node 20, beside @marcbachmann/cel-js 8.0.0 (npm): the language definition of CEL has whole numbers of 64 bits, whose
# division leaves out the fraction (Values, Numeric Values, and Standard Definitions, _/_), texts whose escapes are undone (String and Bytes
# Values), and lists and maps that are equal by what they hold (Equality), also for the operator in. In cel-js 7 / 2 is 3.5, two numbers
# above 2^53 are one, an escape stays as it is written, and a list is in no other list. == compares lists right. No error is set. So a rule
# that counts packs of two, or asks for a name with an apostrophe, chooses other messages than the same rule in another program.
#
# Seen:
#   7 / 2 == 3: cel-js false, by CEL true
#   9007199254740993 == 9007199254740992: cel-js true, by CEL false
#   'kim\'s' == "kim's": cel-js false, by CEL true
#   size('a\tb'): cel-js 4, by CEL 3
#   [1, 2] in [[1, 2]]: cel-js false, by CEL true
#   [[1, 2]] == [[1, 2]]: cel-js true, by CEL true
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts cel-js@0.8.2 @marcbachmann/cel-js@8.0.0
cat > read.mjs <<'END'
import { evaluate as right } from '@marcbachmann/cel-js'
import { evaluate } from 'cel-js'

const rules = [
  '7 / 2 == 3',
  '9007199254740993 == 9007199254740992',
  String.raw`'kim\'s' == "kim's"`,
  String.raw`size('a\tb')`,
  '[1, 2] in [[1, 2]]',
  '[[1, 2]] == [[1, 2]]',
]
for (const rule of rules) process.stdout.write(`${rule}: cel-js ${evaluate(rule)}, by CEL ${right(rule)}\n`)
END
node read.mjs | tee seen
diff seen - <<'END'
7 / 2 == 3: cel-js false, by CEL true
9007199254740993 == 9007199254740992: cel-js true, by CEL false
'kim\'s' == "kim's": cel-js false, by CEL true
size('a\tb'): cel-js 4, by CEL 3
[1, 2] in [[1, 2]]: cel-js false, by CEL true
[[1, 2]] == [[1, 2]]: cel-js true, by CEL true
END
