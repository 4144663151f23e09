#!/usr/bin/env bash
# bai2 0.15.0 (PyPI), Python 3.11: a bank file in BAI2 that is read and written with nothing changed has one empty field more in a record 16 whose funds type is
# not V, S or D. By the format (BAI2, record 16) availability follows these three alone, so the next reader finds no bank reference, and the
# customer's reference is part of the text. Where the type is V, S or D the same record comes back as it was.
#
# Seen:
#   16,195,10000,Z,BANK1,CUST1,INVOICE 7 -> 16,195,10000,Z,,BANK1,CUST1,INVOICE 7
#     read again: bank None, customer BANK1, text CUST1,INVOICE 7
#   16,195,10000,V,260103,1200,BANK1,CUST1,INVOICE 7 -> 16,195,10000,V,260103,1200,BANK1,CUST1,INVOICE 7
#     read again: bank BANK1, customer CUST1, text INVOICE 7
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check bai2==0.15.0
cat > read.py <<'END'
from bai2 import bai2

FILE = """01,SENDER,RECEIVER,260101,1200,1,80,,2/
02,RECEIVER,SENDER,1,260101,1200,EUR,2/
03,123,EUR,015,10000,,/
{}
49,20000,3/
98,20000,1,5/
99,20000,1,7/"""


def transaction(file):
    return file.children[0].children[0].children[0]


for record in ("16,195,10000,Z,BANK1,CUST1,INVOICE 7", "16,195,10000,V,260103,1200,BANK1,CUST1,INVOICE 7"):
    written = bai2.write(bai2.parse_from_string(FILE.format(record)))
    found = transaction(bai2.parse_from_string(written))
    print(record, "->", next(line for line in written.splitlines() if line.startswith("16")))
    print(f"  read again: bank {found.bank_reference}, customer {found.customer_reference}, text {found.text}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
16,195,10000,Z,BANK1,CUST1,INVOICE 7 -> 16,195,10000,Z,,BANK1,CUST1,INVOICE 7
  read again: bank None, customer BANK1, text CUST1,INVOICE 7
16,195,10000,V,260103,1200,BANK1,CUST1,INVOICE 7 -> 16,195,10000,V,260103,1200,BANK1,CUST1,INVOICE 7
  read again: bank BANK1, customer CUST1, text INVOICE 7
END
