#!/usr/bin/env bash
# elementpath 5.1.4 (PyPI), Python 3.11, its parser for XPath 1.0: a node set is never equal to a number, so that a filter such as [@n = 3] gives nothing and
# sets no error. XPath 1.0 (3.4) compares the number of each node. Less and greater do, and so does = in the parser for 2.0, in which the
# same text is often tried first. lxml 6.1.3 (libxml2) gives what the standard says.
#
# Seen:
#   //line[@n = 3]: 1.0 0 nodes, 2.0 1 node, libxml2 1 node
#   //line[price = 10]: 1.0 0 nodes, 2.0 1 node, libxml2 1 node
#   //line[@n >= 3]: 1.0 2 nodes, 2.0 2 nodes, libxml2 2 nodes
#   //line[@n != 3]: 1.0 2 nodes, 2.0 1 node, libxml2 1 node
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check elementpath==5.1.4 lxml==6.1.3
cat > read.py <<'END'
import elementpath
from lxml import etree

order = etree.fromstring('<order><line n="3"><price>9</price></line><line n="12"><price>10.00</price></line></order>')


def told(nodes):
    return f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"


for path in ("//line[@n = 3]", "//line[price = 10]", "//line[@n >= 3]", "//line[@n != 3]"):
    first = elementpath.select(order, path, parser=elementpath.XPath1Parser)
    second = elementpath.select(order, path, parser=elementpath.XPath2Parser)
    print(f"{path}: 1.0 {told(first)}, 2.0 {told(second)}, libxml2 {told(order.xpath(path))}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
//line[@n = 3]: 1.0 0 nodes, 2.0 1 node, libxml2 1 node
//line[price = 10]: 1.0 0 nodes, 2.0 1 node, libxml2 1 node
//line[@n >= 3]: 1.0 2 nodes, 2.0 2 nodes, libxml2 2 nodes
//line[@n != 3]: 1.0 2 nodes, 2.0 1 node, libxml2 1 node
END
