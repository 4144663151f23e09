#!/usr/bin/env bash
# pika 1.4.4 (PyPI), Python 3.11: a header of AMQP 0-9-1 may hold a float or a double (4.2.1, field-value f and d). pika reads both as whole
# numbers, so that a rate of 0.75 is 0 and an amount loses its cents. No error is set. Headers with such numbers come from other clients,
# here amqp 5.4.2, that of Celery; pika itself sends none. pamqp 4.0.1, that of aio-pika, reads the same octets as they were written. A
# sender that hands messages of Parley to such consumers writes fractions as text or as decimals.
#
# Seen:
#   0.75: pika 0, pamqp 0.75
#   19.99: pika 19, pamqp 19.99
#   -1.5: pika -1, pamqp -1.5
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check amqp==5.4.2 pika==1.4.4 pamqp==4.0.1
cat > read.py <<'END'
from amqp.serialization import dumps
from pamqp import decode
from pika.data import decode_table

for number in (0.75, 19.99, -1.5):
    octets = dumps("F", [{"rate": number}])
    read, _ = decode_table(octets, 0)
    _, standard = decode.field_table(octets)
    print(f"{number}: pika {read['rate']}, pamqp {standard['rate']}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
0.75: pika 0, pamqp 0.75
19.99: pika 19, pamqp 19.99
-1.5: pika -1, pamqp -1.5
END
