#!/usr/bin/env bash
# github.com/blues/jsonata-go v1.5.4, Go 1.26, beside jsonata 2.2.2 (npm, the reference), Node 20: $encodeUrlComponent writes a space as
# %20, and $decodeUrlComponent leaves a plus as it is (JSONata, String functions). In Go a space becomes a plus, which in a path is a plus
# and no space (RFC 3986, 3.3), and a plus in a text becomes a space. [F1] of a time is the day of the week, 1 for Monday (Date/Time
# functions, as XPath and Functions 3.1, 9.8.4.1); in Go Friday is 6 and Sunday 1. A number is written with 15 digits (String functions,
# $string), in Go with all. No error is set. A mapping gives other texts than where it was tried.
#
# Seen:
#   '/orders/' & $encodeUrlComponent('new one'): Go "/orders/new+one", reference "/orders/new%20one"
#   $decodeUrlComponent('7+%2B'): Go "7 +", reference "7++"
#   $fromMillis(1767322445678, '[FNn] [F1]'): Go "Friday 6", reference "Friday 5"
#   $fromMillis(1767495245678, '[FNn] [F1]'): Go "Sunday 1", reference "Sunday 7"
#   $string(0.1 + 0.2): Go "0.30000000000000004", reference "0.3"
#   $fromMillis(1767322445678, '[D01].[M01].[Y]'): Go "02.01.2026", reference "02.01.2026"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts jsonata@2.2.2
cat > go.mod <<'END'
module example
go 1.24
require github.com/blues/jsonata-go v1.5.4
END
cat > main.go <<'END'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/blues/jsonata-go"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		value, err := jsonata.MustCompile(lines.Text()).Eval(nil)
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
END
cat > expressions <<'END'
'/orders/' & $encodeUrlComponent('new one')
$decodeUrlComponent('7+%2B')
$fromMillis(1767322445678, '[FNn] [F1]')
$fromMillis(1767495245678, '[FNn] [F1]')
$string(0.1 + 0.2)
$fromMillis(1767322445678, '[D01].[M01].[Y]')
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import jsonata from 'jsonata'

const lines = (name) => readFileSync(name, 'utf8').trimEnd().split('\n')
const inGo = lines('written')
for (const [i, expression] of lines('expressions').entries()) {
  const value = JSON.stringify(await jsonata(expression).evaluate({}))
  process.stdout.write(`${expression}: Go ${inGo[i]}, reference ${value}\n`)
}
END
export GOFLAGS=-mod=mod
go run . < expressions > written
node read.mjs | tee seen
diff seen - <<'END'
'/orders/' & $encodeUrlComponent('new one'): Go "/orders/new+one", reference "/orders/new%20one"
$decodeUrlComponent('7+%2B'): Go "7 +", reference "7++"
$fromMillis(1767322445678, '[FNn] [F1]'): Go "Friday 6", reference "Friday 5"
$fromMillis(1767495245678, '[FNn] [F1]'): Go "Sunday 1", reference "Sunday 7"
$string(0.1 + 0.2): Go "0.30000000000000004", reference "0.3"
$fromMillis(1767322445678, '[D01].[M01].[Y]'): Go "02.01.2026", reference "02.01.2026"
END
