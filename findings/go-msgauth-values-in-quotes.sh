#!/usr/bin/env bash
# github.com/emersion/go-msgauth v0.7.0, package authres, Go 1.26, beside authres 1.2.0 (PyPI), Python 3.11: in an Authentication-Results
# header a reason and the value of a property may be a text in quotes (RFC 8601, 2.2, and RFC 2045, 5.1, value), and the part of an address
# before its sign too (RFC 5322, 3.4.1). The Go package ends such a text at its first space and keeps the quote in front, and of a value
# without a space it keeps both. It writes a reason in quotes itself and reads another one back. No error is set. A report of why mail
# failed so says one word, and a domain in quotes is equal to no domain.
#
# Seen:
#   dkim=fail reason="body was changed" header.d="example.net"
#     Go: reason "body, domain "example.net"
#     Python: reason body was changed, domain example.net
#   spf=pass smtp.mailfrom="kim lee"@example.net
#     Go: from "kim
#     Python: from "kim lee"@example.net
#   written and read in Go: reason body was changed, then "body
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check authres==1.2.0
cat > go.mod <<'END'
module example
go 1.24
require github.com/emersion/go-msgauth v0.7.0
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/emersion/go-msgauth/authres"
)

func read(header string) authres.Result {
	_, results, err := authres.Parse(header)
	if err != nil || len(results) != 1 {
		panic(fmt.Sprint(len(results), " results, ", err))
	}
	return results[0]
}

func main() {
	dkim := read(os.Args[1]).(*authres.DKIMResult)
	fmt.Printf("reason %s, domain %s\n", dkim.Reason, dkim.Domain)
	fmt.Printf("from %s\n", read(os.Args[2]).(*authres.SPFResult).From)
	given := &authres.DKIMResult{Value: authres.ResultFail, Reason: "body was changed", Domain: "example.net"}
	again := read(authres.Format("example.net", []authres.Result{given})).(*authres.DKIMResult)
	fmt.Printf("reason %s, then %s\n", given.Reason, again.Reason)
}
END
cat > read.py <<'END'
import subprocess
import sys

import authres

results = ('dkim=fail reason="body was changed" header.d="example.net"', 'spf=pass smtp.mailfrom="kim lee"@example.net')
headers = [f"example.net; {result}" for result in results]
process = subprocess.run(["go", "run", ".", *headers], stdout=subprocess.PIPE, text=True)
if process.returncode:
    sys.exit(1)
dkim, spf, again = process.stdout.splitlines()
for result, header, in_go in zip(results, headers, (dkim, spf), strict=True):
    [right] = authres.AuthenticationResultsHeader.parse(f"Authentication-Results: {header}").results
    value = right.properties[0].value
    shown = f"reason {right.reason}, domain {value}" if right.method == "dkim" else f"from {value}"
    print(f"{result}\n  Go: {in_go}\n  Python: {shown}")
print(f"written and read in Go: {again}")
END
export GOFLAGS=-mod=mod
venv/bin/python read.py | tee seen
diff seen - <<'END'
dkim=fail reason="body was changed" header.d="example.net"
  Go: reason "body, domain "example.net"
  Python: reason body was changed, domain example.net
spf=pass smtp.mailfrom="kim lee"@example.net
  Go: from "kim
  Python: from "kim lee"@example.net
written and read in Go: reason body was changed, then "body
END
