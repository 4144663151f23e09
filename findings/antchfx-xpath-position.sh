#!/usr/bin/env bash
# github.com/antchfx/xpath v1.3.9 with xmlquery v1.5.2, Go 1.26: position() after a path in parentheses filters nothing, and last()-1 there gives the first
# node. A second predicate that asks for position() counts before the first one, and [1] after a condition on // counts in the whole document
# in place of each parent (XPath 1.0, 2.4 and 3.3). No error is set. lxml 6.1.3 (PyPI, libxml2) gives what the standard says.
#
# Seen:
#   (//n)[2]: Go 2, libxml2 2
#   (//n)[position() = 2]: Go 1 2 3, libxml2 2
#   (//n)[position() < 3]: Go 1 2 3, libxml2 1 2
#   (//n)[last() - 1]: Go 1, libxml2 2
#   //l[n > 1][position() = 2]/n: Go 2, libxml2 3
#   //*[self::s or self::n][1]: Go a, libxml2 a b c
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lxml==6.1.3
cat > go.mod <<'END'
module example
go 1.24
require (
	github.com/antchfx/xmlquery v1.5.2
	github.com/antchfx/xpath v1.3.9
)
END
cat > document.xml <<'END'
<o><l><s>a</s><n>1</n></l><l><s>b</s><n>2</n></l><l><s>c</s><n>3</n></l></o>
END
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/antchfx/xmlquery"
)

func main() {
	file, err := os.Open("document.xml")
	if err != nil {
		panic(err)
	}
	document, err := xmlquery.Parse(file)
	if err != nil {
		panic(err)
	}
	for _, path := range os.Args[1:] {
		var texts []string
		for _, node := range xmlquery.Find(document, path) {
			texts = append(texts, node.InnerText())
		}
		fmt.Println(strings.Join(texts, " "))
	}
}
END
cat > read.py <<'END'
import subprocess

from lxml import etree

PATHS = (
    "(//n)[2]",
    "(//n)[position() = 2]",
    "(//n)[position() < 3]",
    "(//n)[last() - 1]",
    "//l[n > 1][position() = 2]/n",
    "//*[self::s or self::n][1]",
)
document = etree.parse("document.xml")
go = subprocess.run(["go", "run", ".", *PATHS], capture_output=True, text=True, check=True).stdout.splitlines()
for path, texts in zip(PATHS, go, strict=True):
    print(f"{path}: Go {texts}, libxml2 {' '.join(node.text for node in document.xpath(path))}")
END
export GOFLAGS=-mod=mod
venv/bin/python read.py | tee seen
diff seen - <<'END'
(//n)[2]: Go 2, libxml2 2
(//n)[position() = 2]: Go 1 2 3, libxml2 2
(//n)[position() < 3]: Go 1 2 3, libxml2 1 2
(//n)[last() - 1]: Go 1, libxml2 2
//l[n > 1][position() = 2]/n: Go 2, libxml2 3
//*[self::s or self::n][1]: Go a, libxml2 a b c
END
