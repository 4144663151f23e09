"""What psycopg sends without an error, and not as it was meant."""

import os

import psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    handle = connection.execute("select parley.begin_dialog('shop', 'warehouse')").fetchone()[0]
    for call, body in [
        ("send(%s, %s, %s)", ["a", "b"]),
        ("send(%s, %s, %s)", ("a", "b")),
        ("send(%s, %s, %s::jsonb)", []),
        ("send(%s, %s, %s::bytea)", "\\x6162"),
    ]:
        connection.execute(f"select parley.{call}", [handle, "DEFAULT", body])
