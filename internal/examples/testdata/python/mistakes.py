"""What psycopg sends without an error, and not as it was meant."""

import os

import psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    handle = connection.execute("select parley.begin_dialog('shop', 'warehouse')").fetchone()[0]
    for call, body in [
        ("send", ["a", "b"]),
        ("send", ("a", "b")),
        ("send_json", []),
        ("send_binary", "\\x6162"),
    ]:
        connection.execute(f"select parley.{call}(%s, %s, %s)", [handle, "DEFAULT", body])
