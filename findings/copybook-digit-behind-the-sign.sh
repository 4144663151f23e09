#!/usr/bin/env bash
# copybook 1.0.16 (PyPI, a reader of COBOL's record layouts), Python 3.11: of a number with a sign of its own in front and decimals the last digit of the whole
# part is left out, so that an amount of a hundred and more is about a tenth. SIGN LEADING SEPARATE (ISO/IEC 1989, SIGN clause) counts as a
# position in the length of the field, and is then cut off the digits. Whole numbers and numbers without a sign are right.
#
# Seen:
#   PIC 9(3)V99: 12345 is 123.45
#   PIC S9(3)V99 SIGN LEADING SEPARATE: +12345 is 12.45
#   PIC S9(3)V99 SIGN LEADING SEPARATE: -98765 is -98.65
#   PIC +999.99: +123.45 is 12.45
#   PIC S9(3) SIGN LEADING SEPARATE: -123 is -123
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check copybook==1.0.16
cat > read.py <<'END'
import copybook

for picture, digits in (
    ("9(3)V99", "12345"),
    ("S9(3)V99 SIGN LEADING SEPARATE", "+12345"),
    ("S9(3)V99 SIGN LEADING SEPARATE", "-98765"),
    ("+999.99", "+123.45"),
    ("S9(3) SIGN LEADING SEPARATE", "-123"),
):
    layout = copybook.parse_string(f"       01 ENTRY.\n          05 AMOUNT PIC {picture}.\n")
    field = layout.flatten()[-1]
    assert field.get_total_length() == len(digits)
    print(f"PIC {picture}: {digits} is {field.parse(digits)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
PIC 9(3)V99: 12345 is 123.45
PIC S9(3)V99 SIGN LEADING SEPARATE: +12345 is 12.45
PIC S9(3)V99 SIGN LEADING SEPARATE: -98765 is -98.65
PIC +999.99: +123.45 is 12.45
PIC S9(3) SIGN LEADING SEPARATE: -123 is -123
END
