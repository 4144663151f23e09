#!/usr/bin/env bash
# zeep 4.3.3 (PyPI, the usual SOAP client), Python 3.11: of some values that its types accept it writes texts that their types in XML Schema (part 2) do not have:
# infinity and no number (3.2.5, 3.2.4), a small float as decimal (3.2.3), a month of one digit (3.2.14), a year of two in a date (3.2.9). No error
# is set here: a receiver that validates refuses the whole request. A token (3.3.2) is read with the runs of blanks that its type collapses.
#
# Seen:
#   double inf: inf, valid no
#   float nan: NAN, valid no
#   decimal 1e-07: 1e-07, valid no
#   gMonth 3: --3, valid no
#   date 0099-01-01: 99-01-01, valid no
#   date 2026-01-01: 2026-01-01, valid yes
#   token: 'a    b', by the standard 'a b'
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check zeep==4.3.3 lxml==6.1.3
cat > read.py <<'END'
import datetime

from lxml import etree
from zeep.xsd.types import builtins


def is_valid(name, text):
    schema = etree.XMLSchema(etree.fromstring(
        f'<schema xmlns="http://www.w3.org/2001/XMLSchema"><element name="v" type="{name}"/></schema>'))
    element = etree.Element("v")
    element.text = text
    return schema.validate(element)


for kind, value, shown in (
    (builtins.Double, float("inf"), "inf"),
    (builtins.Float, float("nan"), "nan"),
    (builtins.Decimal, 1e-07, "1e-07"),
    (builtins.gMonth, (3, None), "3"),
    (builtins.Date, datetime.date(99, 1, 1), "0099-01-01"),
    (builtins.Date, datetime.date(2026, 1, 1), "2026-01-01"),
):
    name = kind._default_qname.localname
    text = kind().xmlvalue(value)
    print(f"{name} {shown}: {text}, valid {'yes' if is_valid(name, text) else 'no'}")
print(f"token: {builtins.Token().pythonvalue('a    b')!r}, by the standard 'a b'")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
double inf: inf, valid no
float nan: NAN, valid no
decimal 1e-07: 1e-07, valid no
gMonth 3: --3, valid no
date 0099-01-01: 99-01-01, valid no
date 2026-01-01: 2026-01-01, valid yes
token: 'a    b', by the standard 'a b'
END
