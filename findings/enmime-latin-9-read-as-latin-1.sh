#!/usr/bin/env bash
# github.com/jhillyerd/enmime/v2 v2.3.0, Go 1.26: a text that declares iso-8859-15 is read as iso-8859-1 when it is long enough, because a guess from its octets
# wins over the declaration. The two differ in eight characters, of which the euro sign is one and the French oe another. The short text of the
# same writer is right, so an example of one line passes. A warning in Errors is all that tells of it.
#
# Seen:
#   one sentence: Prix 5 €, œuvre.
#   twenty of it: Prix 5 ¤, ½uvre.
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'END'
module example
go 1.24
require github.com/jhillyerd/enmime/v2 v2.3.0
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"strings"

	"github.com/jhillyerd/enmime/v2"
)

func main() {
	for _, t := range []struct {
		name  string
		count int
	}{{"one sentence", 1}, {"twenty of it", 20}} {
		text := "Subject: a\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=iso-8859-15\r\n" +
			"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + strings.Repeat("Prix 5 =A4, =BDuvre. =\r\n", t.count)
		envelope, err := enmime.ReadEnvelope(strings.NewReader(text))
		if err != nil {
			panic(err)
		}
		first, _, _ := strings.Cut(envelope.Text, ". ")
		fmt.Println(t.name+":", strings.TrimRight(first, ". \r\n")+".")
	}
}
END
export GOFLAGS=-mod=mod
go run . | tee seen
diff seen - <<'END'
one sentence: Prix 5 €, œuvre.
twenty of it: Prix 5 ¤, ½uvre.
END
