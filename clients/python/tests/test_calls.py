"""Each call against a real server, and each error as the exception of its number."""

import threading
import time
from datetime import datetime, timedelta, timezone

import psycopg
import pytest

import parley

#: For so many seconds a test waits for what must come. It is no measure of speed.
PATIENCE = 120
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_message_of_a_simple_queue_arrives_as_it_was_put(connection):
    for body in ("chair", b"\x00\xff", {"seats": [1, 2]}, [1, 2], None):
        assert parley.put(connection, "jobs", body).message_id
    parley.put_batch(connection, "jobs", ["a", "b"], key="k", trace_context=TRACE)
    taken = parley.take(connection, "jobs", 10)
    assert [message.body for message in taken[:2]] == [b"chair", b"\x00\xff"]
    assert [message.json() for message in taken[2:5]] == [{"seats": [1, 2]}, [1, 2], None]
    assert [(message.text, message.key, message.trace_context) for message in taken[5:]] == [
        ("a", "k", TRACE), ("b", "k", TRACE),
    ]
    assert taken[0].attempt == 1 and taken[0].priority == 5 and taken[0].enqueued_at.tzinfo


def test_puts_that_say_what_came_of_them(connection):
    sent = parley.put_each(connection, "jobs", ["a", {"b": 1}], deduplication_keys=["one", None])
    assert [message.is_duplicate for message in sent] == [False, False]
    assert parley.put(connection, "jobs", "a", deduplication_key="one").message_id == sent[0].message_id
    assert not parley.put_unique(connection, "jobs", "c", "only").is_duplicate
    assert parley.put_unique(connection, "jobs", "c", "only").is_duplicate
    assert parley.put_group(connection, "jobs", ["g"], "jobs", "after g", keys=["k"]) > 0
    later = parley.put(connection, "jobs", "d", deliver_at=datetime.now(timezone.utc) + timedelta(hours=1))
    assert later.delayed_id is not None
    assert parley.cancel(connection, "jobs", sent[0].message_id)
    assert not parley.cancel(connection, "jobs", sent[0].message_id)


def test_what_failed_waits_or_is_set_aside(connection):
    parley.put_batch(connection, "jobs", ["waits", "never"])
    with connection.transaction():
        with connection.transaction(force_rollback=True):
            first, second = parley.take(connection, "jobs", 2)
        retried = parley.retry(connection, "jobs", first.message_id, ValueError("busy"), delay=timedelta(hours=1))
        assert retried.retry_at > datetime.now(timezone.utc) and not retried.is_set_aside
        assert parley.fail(connection, "jobs", second.message_id, "no such picture")
    assert connection.execute("select error from parley.failing_messages").fetchall() == [("busy",)]
    assert connection.execute("select error from parley.set_aside_messages").fetchall() == [("no such picture",)]
    assert parley.take(connection, "jobs") == []


def test_long_work_is_claimed_renewed_and_completed(connection):
    parley.put_batch(connection, "jobs", ["long", "lost"])
    claimed = parley.claim(connection, "jobs", lease=timedelta(seconds=30))
    assert [message.text for message in claimed.messages] == ["long"]
    assert parley.renew(connection, claimed, progress={"pages": 3})
    assert parley.complete(connection, claimed, {"pages": 9})
    assert not parley.complete(connection, claimed)
    other = parley.claim(connection, "jobs")
    given_back = parley.give_back(connection, other, "out of memory", delay=timedelta(hours=1))
    assert given_back.retry_at > datetime.now(timezone.utc) + timedelta(minutes=50) and not given_back.is_set_aside
    assert parley.claim(connection, "jobs") is None
    assert connection.execute("select result from parley.finished_messages").fetchall() == [({"pages": 9},)]
    parley.put(connection, "jobs", "quick")
    with connection.transaction():
        (quick,) = parley.take(connection, "jobs")
        assert parley.done(connection, "jobs", quick.message_id, {"size": 1})


def test_what_is_given_back_waits_by_the_policy_or_is_set_aside(connection):
    parley.put(connection, "jobs", "long")
    assert parley.give_back(connection, parley.claim(connection, "jobs"), "busy").is_set_aside is False
    again = claimed_again(connection)
    assert [message.attempt for message in again.messages] == [2]
    assert parley.give_back(connection, again, ValueError("no such film"), is_final=True).is_set_aside
    assert connection.execute("select error from parley.set_aside_messages").fetchall() == [("no such film",)]


def claimed_again(connection):
    """Claims what waits for its next attempt, when that begins."""
    end = time.monotonic() + PATIENCE
    while not (claimed := parley.claim(connection, "jobs")):
        assert time.monotonic() < end, "nothing comes back"
        time.sleep(0.01)
    return claimed


def test_a_conversation_from_its_begin_to_its_end(connection):
    handle = parley.begin_dialog(connection, "shop", "warehouse", lifetime=60)
    parley.send(connection, handle, {"chairs": 4}, trace_context=TRACE)
    parley.send_batch(connection, handle, ["second", "third"])
    assert parley.send(connection, handle, "once", deduplication_key="k").is_duplicate is False
    assert parley.send(connection, handle, "once", deduplication_key="k").is_duplicate is True
    messages = parley.receive(connection, "warehouse_queue", 10)
    assert messages[0].json() == {"chairs": 4} and messages[0].trace_context == TRACE
    assert [message.text for message in messages[1:]] == ["second", "third", "once"]
    parley.reply(connection, messages[0], "packed")
    answers = parley.receive(connection, "shop_queue")
    assert answers[0].text == "packed" and answers[1].is_end_dialog
    parley.end_conversation(connection, handle)

    parley.send_and_end(connection, "shop", "warehouse", "no answer")
    begun = parley.begin_and_send(connection, "shop", "warehouse", "refused")
    one_way = parley.receive(connection, "warehouse_queue")[0]
    assert one_way.text == "no answer"
    (refused,) = parley.receive(connection, "warehouse_queue", 1)
    parley.end_conversation(connection, refused.conversation_handle, error_code=7, description="sold out")
    failure = parley.receive_reply(connection, begun).error()
    assert (failure.code, failure.description) == (7, "sold out")


def test_a_request_gets_its_reply_or_says_why_not(connection, dsn):
    def answer(number):
        with psycopg.connect(dsn, autocommit=True) as target:
            for _ in range(number):
                with target.transaction():
                    messages = parley.receive(target, "warehouse_queue", 1, timeout=PATIENCE * 1000)
                    if messages[0].text == "refuse":
                        parley.end_conversation(target, messages[0].conversation_handle, error_code=3, description="no")
                    elif messages[0].text == "silence":
                        parley.end_conversation(target, messages[0].conversation_handle)
                    else:
                        parley.reply(target, messages[0], messages[0].text.upper())

    target = threading.Thread(target=answer, args=[3], daemon=True)
    target.start()
    assert parley.request(connection, "shop", "warehouse", "chair", timeout=PATIENCE).text == "CHAIR"
    with pytest.raises(parley.ConversationError, match="error 3: no"):
        parley.request(connection, "shop", "warehouse", "refuse", timeout=PATIENCE)
    with pytest.raises(parley.NoReply):
        parley.request(connection, "shop", "warehouse", "silence", timeout=PATIENCE)
    target.join(PATIENCE)
    with pytest.raises(parley.RequestTimeout, match="Give it more time"):
        parley.request(connection, "shop", "warehouse", "nobody", timeout=0.1)
    received = parley.receive(connection, "warehouse_queue")
    assert [message.is_error for message in received] == [False, True] and received[1].error().code == 408
    with connection.transaction(), pytest.raises(psycopg.ProgrammingError, match="has to be committed"):
        parley.request(connection, "shop", "warehouse", "never", timeout=1)


def test_each_error_is_the_exception_of_its_number(connection, dsn):
    with pytest.raises(parley.QueueNotFound) as refusal:
        parley.put(connection, "job", "a")
    assert refusal.value.number == 208 and refusal.value.sqlstate == "SB05S"
    assert "parley.service_queues" in refusal.value.hint and refusal.value.hint in str(refusal.value)
    with pytest.raises(parley.WrongArgument):
        parley.take(connection, "shop_queue")
    with pytest.raises(parley.Error) as other:
        parley.begin_dialog(connection, "nobody", "warehouse")
    assert other.value.number == 8423
    with pytest.raises(parley.ConversationNotFound):
        parley.end_conversation(connection, "00000000-0000-0000-0000-000000000001")
    connection.execute("select parley.alter_queue('jobs', status => false)")
    with pytest.raises(parley.QueueDisabled):
        parley.take(connection, "jobs")
    connection.execute("create role clerk_of_python")
    connection.execute("set role clerk_of_python")
    try:
        with pytest.raises((parley.PermissionDenied, psycopg.errors.InsufficientPrivilege)):
            parley.put(connection, "jobs", "a")
    finally:
        connection.execute("reset role")
        connection.execute("drop role clerk_of_python")
    with psycopg.connect(dsn, dbname="template1", autocommit=True) as elsewhere:
        with pytest.raises(parley.NoBroker, match="parley install"):
            parley.put(elsewhere, "jobs", "a")
    with pytest.raises(TypeError, match="not one body"):
        parley.put_batch(connection, "jobs", "abc")
