#!/usr/bin/env bash
# github.com/emersion/go-vcard of 2026-06-18, Go 1.26: a card that is read and written with nothing changed is another one. In N, ADR and
# ORG a semicolon that is escaped parts a value all the same, and its backslash is doubled when it is written (RFC 6350, 3.4). A parameter
# in quotes is written without them (5), so that a label with a colon ends there, and the commas between categories are escaped. Texts such
# as NOTE come back right. No error is set. ical.js 2.2.1 (npm), Node 20, reads both. A program that passes cards on by Parley sends the
# octets that came.
#
# Seen:
#   in Go: family name "Lee\\"
#   given: [["Lee; Smith","Kim","","",""],["Lee; Sons","Sales"],"one\ntwo",["buyer","paid"],["","","Main St","York","","",""]]
#   written: [["Lee\\; Smith","Kim","","",""],["Lee\\; Sons","Sales"],"one\ntwo",["buyer,paid"],[" 4:","","Main St","York","","",""]]
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts ical.js@2.2.1
cat > go.mod <<'END'
module example
go 1.24
require github.com/emersion/go-vcard v0.0.0-20260618161152-d854b7e0e2d3
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/emersion/go-vcard"
)

func main() {
	card, err := vcard.NewDecoder(os.Stdin).Decode()
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "in Go: family name %q\n", card.Name().FamilyName)
	if err := vcard.NewEncoder(os.Stdout).Encode(card); err != nil {
		panic(err)
	}
}
END
cat > read.mjs <<'END'
import { readFileSync } from 'node:fs'
import ICAL from 'ical.js'

for (const name of ['given', 'written']) {
  const card = ICAL.Component.fromString(readFileSync(name, 'utf8'))
  const value = (property) => card.getFirstPropertyValue(property)
  const values = [value('n'), value('org'), value('note'), card.getFirstProperty('categories').getValues(), value('adr')]
  console.log(`${name}: ${JSON.stringify(values)}`)
}
END
printf '%s\r\n' BEGIN:VCARD VERSION:4.0 'FN:Kim Lee' 'N:Lee\; Smith;Kim;;;' 'ORG:Lee\; Sons;Sales' 'NOTE:one\ntwo' CATEGORIES:buyer,paid \
  'ADR;LABEL="Gate: 4":;;Main St;York;;;' END:VCARD > given
export GOFLAGS=-mod=mod
go run . < given > written 2> read
{ tail --lines=1 read; node read.mjs; } | tee seen
diff seen - <<'END'
in Go: family name "Lee\\"
given: [["Lee; Smith","Kim","","",""],["Lee; Sons","Sales"],"one\ntwo",["buyer","paid"],["","","Main St","York","","",""]]
written: [["Lee\\; Smith","Kim","","",""],["Lee\\; Sons","Sales"],"one\ntwo",["buyer,paid"],[" 4:","","Main St","York","","",""]]
END
