"""The calls in Python on the page for those who come from other queues, as they stand there."""

import os
import signal
from datetime import datetime, timedelta, timezone

import parley
import psycopg


def puts(connection):
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    parley.put(connection, "jobs", {"n": 1})
    assert parley.put(connection, "jobs", "x", deliver_at=tomorrow).delayed_id
    parley.put(connection, "jobs", "x", key="user 7", priority=10)
    parley.put_batch(connection, "jobs", ["a", "b"])
    for is_duplicate in (False, True):
        assert parley.put_unique(connection, "jobs", "x", "index").is_duplicate == is_duplicate
        assert parley.put(connection, "jobs", "x", deduplication_key="call 17").is_duplicate == is_duplicate
    bodies = ["a", "b"]
    assert parley.put_group(connection, "jobs", bodies, "jobs", "done") > 0


def take_some(connection):
    # Those of one priority come together, the higher ones first.
    for bodies in (["x"], ['{"n": 1}', "a"]):
        with connection.transaction():
            messages = parley.take(connection, "jobs", 2)
            assert [message.text for message in messages] == bodies
            for message_id in [message.message_id for message in messages]:
                assert parley.done(connection, "jobs", message_id, {"bytes": 7})


def decide(connection):
    waiting = [row[0] for row in connection.execute("select message_id from parley.peek_messages('jobs')")]
    failure, minute = "no answer", timedelta(minutes=1)
    message_id = waiting[0]
    assert parley.retry(connection, "jobs", message_id, failure, delay=minute).retry_at
    message_id = waiting[1]
    assert parley.fail(connection, "jobs", message_id, "no such picture")
    message_id = waiting[2]
    assert parley.cancel(connection, "jobs", message_id, running=True)


def claim_one(connection):
    claimed = parley.claim(connection, "jobs", lease=timedelta(seconds=30))
    assert parley.renew(connection, claimed, progress={"done": 7})
    assert parley.complete(connection, claimed)


def resize(connection, messages):
    connection.execute("insert into resized (picture) values (%s)", [messages[0].text])
    if messages[0].text == "the last one":
        os.kill(os.getpid(), signal.SIGTERM)
    if messages[0].text == "busy":
        raise parley.RetryAfter(60)
    if messages[0].text == "missing":
        raise parley.Final("no such picture")


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    puts(connection)
    take_some(connection)
    decide(connection)
    claim_one(connection)
    for text in ("busy", "missing"):
        parley.put(connection, "jobs", text)
    parley.put(connection, "jobs", "the last one", priority=1)
parley.SimpleConsumer("jobs", resize, readers=4).run()
