#!/usr/bin/env bash
# github.com/jhillyerd/enmime/v2 v2.3.0, Go 1.26: of a message that has HTML, a file and HTML again in multipart/mixed, as Apple's mail program sends it, the
# envelope holds the HTML up to the file alone. What the writer put below the file is neither in HTML nor in Text, nor among attachments, inlines
# and other parts. The warning that there is says that there is no part of plain text. Two parts of plain text are joined.
#
# Seen:
#   HTML: <p>above</p>
#   attachments, inlines, other parts: 1, 0, 0
#   of plain text: above -- below
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

func read(kind, above, below string) *enmime.Envelope {
	lines := []string{
		"Subject: report", "MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=part", "",
		"--part", "Content-Type: text/" + kind + "; charset=utf-8", "", above,
	}
	if kind == "html" {
		lines = append(lines, "--part", "Content-Type: application/pdf", "Content-Disposition: attachment; filename=a.pdf", "", "%PDF")
	}
	lines = append(lines, "--part", "Content-Type: text/"+kind+"; charset=utf-8", "", below, "--part--", "")
	envelope, err := enmime.ReadEnvelope(strings.NewReader(strings.Join(lines, "\r\n")))
	if err != nil {
		panic(err)
	}
	return envelope
}

func main() {
	e := read("html", "<p>above</p>", "<p>below</p>")
	fmt.Println("HTML:", e.HTML)
	fmt.Printf("attachments, inlines, other parts: %d, %d, %d\n", len(e.Attachments), len(e.Inlines), len(e.OtherParts))
	fmt.Println("of plain text:", strings.Join(strings.Fields(read("plain", "above", "below").Text), " "))
}
END
export GOFLAGS=-mod=mod
go run . | tee seen
diff seen - <<'END'
HTML: <p>above</p>
attachments, inlines, other parts: 1, 0, 0
of plain text: above -- below
END
