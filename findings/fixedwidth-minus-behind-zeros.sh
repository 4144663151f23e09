#!/usr/bin/env bash
# fixedwidth 1.3 (PyPI), Python 3.11: a number that is aligned right and filled with zeros, as records for banks and hosts are, has its
# minus behind the zeros. The package itself cannot read the line that it wrote, and a reader that takes the first character for the sign
# (COBOL, SIGN LEADING SEPARATE, ISO/IEC 1989) finds none. No error is set when it is written. A text comes back with the characters that
# filled it, so that a name filled with stars, as cheques have, is another one. A pipeline that hands such lines to Parley formats numbers
# itself and declares the field as text.
#
# Seen:
#   15, 1.50, Kim: 0000001500001.50Kim*****, read: 15, 1.50, Kim*****; Python writes 0000001500001.50
#   -15, -1.50, Kim: 00000-15000-1.50Kim*****, read: invalid literal for int() with base 10: '00000-15'; Python writes -0000015-0001.50
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check fixedwidth==1.3 six==1.17.0
cat > read.py <<'END'
from decimal import Decimal

from fixedwidth.fixedwidth import FixedWidth


def field(kind, start, **more):
    return {"type": kind, "required": True, "start_pos": start, "length": 8, "alignment": "right", "padding": "0", **more}


FIELDS = {
    "number": field("integer", 1),
    "amount": field("decimal", 9, precision=2),
    "name": field("string", 17, alignment="left", padding="*"),
}
for number, amount in ((15, Decimal("1.50")), (-15, Decimal("-1.50"))):
    writer = FixedWidth(FIELDS)
    writer.update(number=number, amount=amount, name="Kim")
    reader = FixedWidth(FIELDS)
    try:
        reader.line = writer.line
        read = ", ".join(str(value) for value in reader.data.values())
    except ValueError as error:
        read = error
    print(f"{number}, {amount}, Kim: {writer.line.strip()}, read: {read}; Python writes {number:08d}{amount:08.2f}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
15, 1.50, Kim: 0000001500001.50Kim*****, read: 15, 1.50, Kim*****; Python writes 0000001500001.50
-15, -1.50, Kim: 00000-15000-1.50Kim*****, read: invalid literal for int() with base 10: '00000-15'; Python writes -0000015-0001.50
END
