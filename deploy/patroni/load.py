"""Load for run.sh: senders, a worker, and the ledger that is checked at the end.

  load.py send DSN FOLDER      puts jobs, begins conversations and sends mail until FOLDER/stop exists
  load.py work DSN FOLDER      takes jobs and writes each into a table, in one transaction
  load.py check DSN FOLDER     compares what was reported as committed with what has arrived; exit code 1 where they differ

Each job, order and letter has the number of its sender and a number of its own. A sender writes a number into a file after PostgreSQL has
reported the commit. So each number of the file has to arrive once, and one whose commit had no answer arrives once or never.
"""

import os
import sys
import time

import psycopg

SENT = {
    "job": "select parley.put('jobs', %(body)s)",
    "order": "select parley.send(parley.begin_dialog('shop', 'orders', 'DEFAULT'), 'DEFAULT', %(body)s::text::bytea)",
    "letter": "select parley_mail.send('shop@shop.example', array['letters@shop.example'], %(body)s, 'A letter.')",
}


# Classes of SQLSTATE that a failover explains: connection, read-only transaction, rollback, resources, intervention, system.
PASSING = ("08", "25", "40", "53", "57", "58")


def stopped(folder):
    return os.path.exists(os.path.join(folder, "stop"))


def connection(dsn, folder):
    """Connects as soon as a server takes writes; None once the run is over."""
    while not stopped(folder):
        try:
            return psycopg.connect(dsn, connect_timeout=3, keepalives_idle=5, keepalives_interval=2, keepalives_count=2, tcp_user_timeout=5000)
        except psycopg.OperationalError:
            time.sleep(0.2)
    return None


def passes(error):
    """Whether trying again is right: the server is gone or no longer leads."""
    return error.sqlstate is None or error.sqlstate[:2] in PASSING


def send(dsn, folder):
    sender, number, conn = os.getpid(), 0, None
    with open(os.path.join(folder, f"sent.{sender}"), "w", buffering=1) as ledger:
        while not stopped(folder):
            conn = conn or connection(dsn, folder)
            if conn is None:
                break
            number += 1
            kinds = ["job", "order"] + (["letter"] if number % 10 == 0 else [])
            try:
                for kind in kinds:
                    conn.execute(SENT[kind], {"body": f"{kind} {sender} {number}"})
                conn.execute("insert into sent select unnest(%s::text[])", ([f"{kind} {sender} {number}" for kind in kinds],))
                conn.commit()
            except psycopg.Error as error:
                if not passes(error):
                    raise
                conn.close()
                conn = None
                continue
            time.sleep(0.005)  # some hundred transactions a second, whatever the machine
            ledger.writelines(f"{kind} {sender} {number}\n" for kind in kinds)


def work(dsn, folder):
    conn = None
    while not stopped(folder):
        conn = conn or connection(dsn, folder)
        if conn is None:
            break
        try:
            conn.execute("insert into arrived select parley.body_text(body), 'python' from parley.take('jobs', 10, timeout => 1000)")
            conn.commit()
        except psycopg.Error as error:
            if not passes(error):
                raise
            conn.close()
            conn = None


def check(dsn, folder):
    reported = []
    for name in os.listdir(folder):
        if name.startswith("sent."):
            with open(os.path.join(folder, name)) as ledger:
                reported += ledger.read().splitlines()
    with psycopg.connect(dsn, autocommit=True) as conn:
        deadline = time.time() + 120
        while time.time() < deadline:
            waiting = conn.execute("select count(*) from (select body from sent except select body from arrived) as missing").fetchone()[0]
            if waiting == 0:
                break
            time.sleep(1)
        conn.execute("create temporary table reported (body text)")
        with conn.cursor().copy("copy reported from stdin") as copy:
            copy.write("".join(line + "\n" for line in reported))
        one = lambda query: conn.execute(query).fetchone()[0]
        committed, arrived = one("select count(*) from sent"), one("select count(*) from arrived")
        by = conn.execute("select reader, count(*) from arrived group by reader order by reader").fetchall()
        lost = one("select count(*) from (select body from sent except select body from arrived) as missing")
        doubled = one("select count(*) from (select from arrived group by body having count(*) > 1) as doubled")
        foreign = one("select count(*) from (select body from arrived except select body from sent) as foreign_bodies")
        gone = one("select count(*) from (select body from reported except select body from sent) as gone")
    print(f"{len(reported)} reported as committed, {committed} in the table of what was sent, {arrived} arrived: "
          + ", ".join(f"{count} by {reader}" for reader, count in by))
    print(f"{lost} lost, {doubled} twice, {foreign} from nowhere, {gone} gone with a server that was reported as committed")
    if {"python", "sql", "mail"} - {reader for reader, _ in by}:
        print("not every reader had something to do")
        return 1
    return lost + doubled + foreign + (gone if os.environ.get("SYNCHRONOUS") == "true" else 0)


if __name__ == "__main__":
    command, arguments = {"send": send, "work": work, "check": check}[sys.argv[1]], sys.argv[2:4]
    sys.exit(1 if command(*arguments) else 0)
