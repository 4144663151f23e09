#!/usr/bin/env bash
# cel-python 0.5.0 (PyPI), Python 3.11, beside github.com/google/cel-go v0.26.1, Go 1.26: string() of CEL gives true as "true", and a
# duration and a time as JSON of Protocol Buffers has them, with the fraction of a second (CEL, Standard Definitions, string; Protocol
# Buffers, ProtoJSON, Duration and Timestamp). The Python package gives "True", and leaves every fraction out, so that half a second is "0s"
# and two times that differ have one text. Compared as values they are right, and whole seconds come through. No error is set. A key or a
# route that a rule makes of such a text is another one in Python than in Go.
#
# Seen:
#   string(true): cel-go "true", cel-python "True"
#   string(duration('0.5s')): cel-go "0.5s", cel-python "0s"
#   string(duration('90s')): cel-go "90s", cel-python "90s"
#   string(timestamp('2026-01-01T00:00:00.5Z')): cel-go "2026-01-01T00:00:00.5Z", cel-python "2026-01-01T00:00:00Z"
#   timestamp('2026-01-01T00:00:00.5Z') == timestamp('2026-01-01T00:00:00Z'): cel-go false, cel-python false
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cel-python==0.5.0
cat > go.mod <<'END'
module example
go 1.24
require github.com/google/cel-go v0.26.1
END
cat > main.go <<'END'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
)

func main() {
	env, err := cel.NewEnv()
	if err != nil {
		panic(err)
	}
	for rules := bufio.NewScanner(os.Stdin); rules.Scan(); {
		ast, issues := env.Compile(rules.Text())
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(cel.NoVars())
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(value.Value())
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
END
cat > rules <<'END'
string(true)
string(duration('0.5s'))
string(duration('90s'))
string(timestamp('2026-01-01T00:00:00.5Z'))
timestamp('2026-01-01T00:00:00.5Z') == timestamp('2026-01-01T00:00:00Z')
END
cat > read.py <<'END'
import json
import sys

import celpy

environment = celpy.Environment()
for rule, right in zip(open("rules").read().splitlines(), sys.stdin.read().splitlines(), strict=True):
    value = environment.program(environment.compile(rule)).evaluate({})
    shown = json.dumps(str(value) if isinstance(value, str) else bool(value))
    print(f"{rule}: cel-go {right}, cel-python {shown}")
END
export GOFLAGS=-mod=mod
go run . < rules | venv/bin/python read.py | tee seen
diff seen - <<'END'
string(true): cel-go "true", cel-python "True"
string(duration('0.5s')): cel-go "0.5s", cel-python "0s"
string(duration('90s')): cel-go "90s", cel-python "90s"
string(timestamp('2026-01-01T00:00:00.5Z')): cel-go "2026-01-01T00:00:00.5Z", cel-python "2026-01-01T00:00:00Z"
timestamp('2026-01-01T00:00:00.5Z') == timestamp('2026-01-01T00:00:00Z'): cel-go false, cel-python false
END
