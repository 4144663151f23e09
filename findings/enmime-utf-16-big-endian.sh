#!/usr/bin/env bash
# github.com/jhillyerd/enmime/v2 v2.3.0, Go 1.26: a text with charset=utf-16 begins with a mark of its byte order (RFC 2781). enmime reads it as little-endian
# whatever the mark says, so that a big-endian text comes out as other letters, and the mark stays in it. No error is set.
#
# Seen:
#   little-endian: "\ufeffab", errors 0
#   big-endian: "\ufffe愀戀", errors 0
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
	for _, t := range [][2]string{{"little-endian", "//5hAGIA"}, {"big-endian", "/v8AYQBi"}} {
		envelope, err := enmime.ReadEnvelope(strings.NewReader("Subject: a\r\nMIME-Version: 1.0\r\n" +
			"Content-Type: text/plain; charset=utf-16\r\nContent-Transfer-Encoding: base64\r\n\r\n" + t[1] + "\r\n"))
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %q, errors %d\n", t[0], envelope.Text, len(envelope.Errors))
	}
}
END
export GOFLAGS=-mod=mod
go run . | tee seen
diff seen - <<'END'
little-endian: "\ufeffab", errors 0
big-endian: "\ufffe愀戀", errors 0
END
