#!/usr/bin/env bash
# asn1tools 0.169.0 (PyPI), Python 3.11: DER has one encoding for each value (X.690). The elements of SET OF are in the order of their
# octets (11.6), those of SET in the order of their tags (10.3), and a bit string with named bits ends with its last one (11.2.2). The codec
# der writes all three as they are given, which is BER. A receiver that encodes a value again to check a hash or a signature finds another
# one, and the same set in another order gives other octets. No error is set. pyasn1 0.6.1 writes the first two as the standard says. A
# sender that signs such values and sends them by Parley sorts them before.
#
# Seen:
#   SET OF: 310a0202012c020102020101 pyasn1 310a0201010201020202012c
#   SET: 3106820101800102 pyasn1 3106800102820101
#   read alone: 03020280 and 03020780
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check asn1tools==0.169.0 pyasn1==0.6.1
cat > read.py <<'END'
import asn1tools
from pyasn1.codec.der.encoder import encode
from pyasn1.type import namedtype, tag, univ

MODULE = """M DEFINITIONS ::= BEGIN
Numbers ::= SET OF INTEGER
Pair ::= SET { late [2] IMPLICIT INTEGER, early [0] IMPLICIT INTEGER }
Rights ::= BIT STRING { read(0), write(1), grant(5) }
END"""
module = asn1tools.compile_string(MODULE, "der")


def number(bit):
    return univ.Integer().subtype(implicitTag=tag.Tag(tag.tagClassContext, tag.tagFormatSimple, bit))


class Pair(univ.Set):
    componentType = namedtype.NamedTypes(namedtype.NamedType("late", number(2)), namedtype.NamedType("early", number(0)))


numbers = univ.SetOf(componentType=univ.Integer())
numbers.extend([300, 2, 1])
pair = Pair()
pair["late"], pair["early"] = 1, 2
print("SET OF:", module.encode("Numbers", [300, 2, 1]).hex(), "pyasn1", encode(numbers).hex())
print("SET:", module.encode("Pair", {"late": 1, "early": 2}).hex(), "pyasn1", encode(pair).hex())
print("read alone:", module.encode("Rights", (b"\x80", 6)).hex(), "and", module.encode("Rights", (b"\x80", 1)).hex())
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
SET OF: 310a0202012c020102020101 pyasn1 310a0201010201020202012c
SET: 3106820101800102 pyasn1 3106800102820101
read alone: 03020280 and 03020780
END
