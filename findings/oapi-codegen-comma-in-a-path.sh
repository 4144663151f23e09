#!/usr/bin/env bash
# github.com/oapi-codegen/runtime v1.9.0, Go 1.26, what clients and servers made from OpenAPI call: a list in a path is written with commas
# between its items, and a comma in an item as %2C (OpenAPI 3.0.3, Style Values, and RFC 6570, 3.2.2 and 3.2.7). The package writes it so,
# and reads it by taking the percent signs away first and parting after. One item with a comma so becomes two, also between a client and a
# server of the same package. Of the styles matrix and label only those with explode are right. For a query it has another function that
# parts first. No error is set. uritemplate 4.2.0 (PyPI), Python 3.11, writes the same text. A path of a service in front of Parley holds
# one value.
#
# Seen:
#   simple, explode false: written a%2Cb,c, read ["a" "b" "c"], by RFC 6570 a%2Cb,c
#   simple, explode true: written a%2Cb,c, read ["a" "b" "c"], by RFC 6570 a%2Cb,c
#   label, explode false: written .a%2Cb,c, read ["a" "b" "c"], by RFC 6570 .a%2Cb,c
#   label, explode true: written .a%2Cb.c, read ["a,b" "c"], by RFC 6570 .a%2Cb.c
#   matrix, explode false: written ;id=a%2Cb,c, read ["a" "b" "c"], by RFC 6570 ;id=a%2Cb,c
#   matrix, explode true: written ;id=a%2Cb;id=c, read ["a,b" "c"], by RFC 6570 ;id=a%2Cb;id=c
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check uritemplate==4.2.0
cat > go.mod <<'END'
module example
go 1.24
require github.com/oapi-codegen/runtime v1.9.0
END
cat > main.go <<'END'
package main

import (
	"fmt"

	"github.com/oapi-codegen/runtime"
)

func main() {
	for _, style := range []string{"simple", "label", "matrix"} {
		for _, explode := range []bool{false, true} {
			text, err := runtime.StyleParamWithLocation(style, explode, "id", runtime.ParamLocationPath, []string{"a,b", "c"})
			if err != nil {
				panic(err)
			}
			var read []string
			options := runtime.BindStyledParameterOptions{ParamLocation: runtime.ParamLocationPath, Explode: explode, Required: true}
			if err := runtime.BindStyledParameterWithOptions(style, "id", text, &read, options); err != nil {
				panic(err)
			}
			fmt.Printf("%s, explode %t: written %s, read %q\n", style, explode, text, read)
		}
	}
}
END
cat > read.py <<'END'
import sys

from uritemplate import expand

TEMPLATES = ("{id}", "{id*}", "{.id}", "{.id*}", "{;id}", "{;id*}")
for line, template in zip(sys.stdin, TEMPLATES, strict=True):
    print(f"{line.strip()}, by RFC 6570 {expand(template, id=['a,b', 'c'])}")
END
export GOFLAGS=-mod=mod
go run . | venv/bin/python read.py | tee seen
diff seen - <<'END'
simple, explode false: written a%2Cb,c, read ["a" "b" "c"], by RFC 6570 a%2Cb,c
simple, explode true: written a%2Cb,c, read ["a" "b" "c"], by RFC 6570 a%2Cb,c
label, explode false: written .a%2Cb,c, read ["a" "b" "c"], by RFC 6570 .a%2Cb,c
label, explode true: written .a%2Cb.c, read ["a,b" "c"], by RFC 6570 .a%2Cb.c
matrix, explode false: written ;id=a%2Cb,c, read ["a" "b" "c"], by RFC 6570 ;id=a%2Cb,c
matrix, explode true: written ;id=a%2Cb;id=c, read ["a,b" "c"], by RFC 6570 ;id=a%2Cb;id=c
END
