#!/usr/bin/env bash
# github.com/microsoft/go-mssqldb v1.11.2, package batch (what sqlcmd for Go and migration tools split scripts with), Go 1.26: an apostrophe in a name in
# brackets is taken for the begin of a text, so that GO behind it ends no batch: two batches come as one. In a nested comment, which
# T-SQL has, GO ends a batch though it is commented out, and both halves are sent.
#
# Seen:
#   a plain name: 2 batches
#   a name with an apostrophe: 1 batch
#   GO in a nested comment: 2 batches
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'END'
module example
go 1.24
require github.com/microsoft/go-mssqldb v1.11.2
END
cat > main.go <<'END'
package main

import (
	"fmt"

	"github.com/microsoft/go-mssqldb/batch"
)

func main() {
	for _, t := range [][2]string{
		{"a plain name", "select 1 as [its]\ngo\nselect 2"},
		{"a name with an apostrophe", "select 1 as [it's]\ngo\nselect 2"},
		{"GO in a nested comment", "/* outer /* inner */\ngo\nend */ select 1"},
	} {
		count := len(batch.Split(t[1], "go"))
		fmt.Printf("%s: %d batch%s\n", t[0], count, map[bool]string{true: "es"}[count > 1])
	}
}
END
export GOFLAGS=-mod=mod
go run . | tee seen
diff seen - <<'END'
a plain name: 2 batches
a name with an apostrophe: 1 batch
GO in a nested comment: 2 batches
END
