#!/usr/bin/env bash
# mt-940 5.1.1 (PyPI), Python 3.11: in field 61 of a SWIFT statement RC, the reversal of a credit, takes money off the account, and RD adds it. The reader gives
# every amount but that of D as positive, so a credit that the bank took back counts twice. The statement below is in balance by the
# standard: 100.00 less 20.00 that was credited before.
#
# Seen:
#   C: 20.00
#   RC: 20.00
#   from 100.00 to 100.00 by 40.00
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mt-940==5.1.1
cat > read.py <<'END'
import mt940

statement = """\
:20:STATEMENT
:25:12345678/0000001
:28C:1/1
:60F:C260101EUR100,00
:61:2601020102C20,00NTRFFIRST
:61:2601020102RC20,00NTRFSECOND
:62F:C260102EUR100,00
"""
transactions = mt940.models.Transactions()
transactions.parse(statement)
amounts = []
for transaction in transactions:
    amounts.append(transaction.data["amount"].amount)
    print(f"{transaction.data['status']}: {amounts[-1]}")
first, last = (transactions.data[f"final_{name}_balance"].amount.amount for name in ("opening", "closing"))
print(f"from {first} to {last} by {sum(amounts)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
C: 20.00
RC: 20.00
from 100.00 to 100.00 by 40.00
END
