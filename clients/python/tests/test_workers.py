"""What workers promise, in threads and in tasks: each test runs with both."""

import asyncio
import contextlib
import inspect
import threading
import time

import psycopg
import pytest

import parley
import parley.aio

#: For so many seconds a test waits for what must come. It is no measure of speed.
PATIENCE = 120
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Threads:
    """Workers of parley in a thread."""

    def start(self, kind, queue, handler, dsn, **settings):
        self.worker = getattr(parley, kind)(queue, handler, conninfo=dsn, **settings)
        self.failure = None

        def run():
            try:
                self.worker.run()
            except Exception as failure:
                self.failure = failure

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def stop(self):
        self.worker.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        if self.failure:
            raise self.failure


class Tasks(Threads):
    """Workers of parley.aio in an event loop of a thread; handlers are written as for threads."""

    def start(self, kind, queue, handler, dsn, **settings):
        self.loop, self.failure = asyncio.new_event_loop(), None
        self.worker = None
        is_ready = threading.Event()

        async def call(*arguments):
            if inspect.iscoroutinefunction(handler):
                return await handler(*arguments)
            bridged = [Bridge(argument, self.loop) for argument in arguments]
            return await asyncio.to_thread(handler, *bridged)

        async def main():
            self.worker = getattr(parley.aio, kind)(queue, call, conninfo=dsn, **settings)
            is_ready.set()
            await self.worker.run()

        def run():
            try:
                self.loop.run_until_complete(main())
            except Exception as failure:
                self.failure = failure
            finally:
                self.loop.close()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        assert is_ready.wait(PATIENCE)

    def stop(self):
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self.loop.call_soon_threadsafe(self.worker.stop)
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        if self.failure:
            raise self.failure


class Bridge:
    """Has an object of asyncio do from a thread what its counterpart does there."""

    def __init__(self, target, loop):
        self._target, self._loop = target, loop

    def __getattr__(self, name):
        found = getattr(self._target, name)
        if not callable(found):
            return found

        def call(*arguments, **named):
            result = found(*arguments, **named)
            if hasattr(result, "__aenter__") and not inspect.isawaitable(result):
                return BridgedContext(result, self._loop)
            return self._wait(result) if inspect.isawaitable(result) else result

        return call

    def __getitem__(self, number):
        return self._target[number]

    def __len__(self):
        return len(self._target)

    def _wait(self, awaitable):
        async def wait():
            return await awaitable

        waiting = wait()
        try:
            asked = asyncio.run_coroutine_threadsafe(waiting, self._loop)
        except RuntimeError:  # the loop has ended, and the handler was cut off
            waiting.close()
            awaitable.close()
            raise
        return asked.result(PATIENCE)


class BridgedContext:
    def __init__(self, context, loop):
        self._context, self._bridge, self._loop = context, Bridge(context, loop), loop

    def __enter__(self):
        return Bridge(self._bridge._wait(self._context.__aenter__()), self._loop)

    def __exit__(self, *failure):
        return self._bridge._wait(self._context.__aexit__(*failure))


@pytest.fixture(params=[Threads, Tasks])
def workers(request):
    return request.param()


def until(connection, query, answer):
    end = time.monotonic() + PATIENCE
    while (found := connection.execute(query).fetchone()[0]) != answer:
        assert time.monotonic() < end, f"{query} gives {found}, not {answer}"
        time.sleep(0.01)


def write(connection, messages):
    for message in messages:
        connection.execute("insert into done values (%s)", [(message.body or b"").decode()])


def test_a_worker_wakes_for_each_message_and_observes_it(workers, connection, dsn):
    turns = []
    workers.start("SimpleConsumer", "jobs", write, dsn, readers=2, poll_interval=3600.0, observer=turns.append)
    # Whoever puts from then on notifies.
    until(connection, "select parley._p_is_listening(object_id) from parley.service_queues where name = 'jobs'", True)
    for number in range(3):
        parley.put(connection, "jobs", f"job {number}")
        until(connection, "select count(*) from done", number + 1)
    workers.stop()
    assert [turn.messages for turn in turns] == [1, 1, 1] and turns[0].error is None and turns[0].queue == "jobs"


def test_a_failure_waits_by_the_policy_and_a_bad_message_is_set_aside_alone(workers, connection, dsn):
    def work(connection, messages):
        if any(message.body == b"bad" for message in messages):
            raise ValueError("no such picture")
        if any(message.body == b"final" for message in messages):
            raise parley.Final("never")
        write(connection, messages)

    parley.put_batch(connection, "jobs", ["a", "bad", "b", "final"])
    workers.start("SimpleConsumer", "jobs", work, dsn, count=10, poll_interval=0.1)
    until(connection, "select count(*) from done", 2)
    until(connection, "select count(*) from parley.set_aside_messages", 2)
    workers.stop()
    aside = connection.execute("select error from parley.set_aside_messages order by error").fetchall()
    assert aside == [("never",), ("no such picture",)]


def test_a_statement_that_failed_unnoticed_is_a_failure(workers, connection, dsn):
    def work(connection, messages):
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1 / 0")

    parley.put(connection, "jobs", "a")
    workers.start("SimpleConsumer", "jobs", work, dsn, poll_interval=0.1)
    until(connection, "select count(*) from parley.set_aside_messages", 1)
    workers.stop()
    assert "though it raised nothing" in connection.execute("select error from parley.set_aside_messages").fetchone()[0]


def test_a_conversation_is_handled_answered_and_ended(workers, connection, dsn):
    def pack(connection, messages):
        for message in messages:
            if message.text == "bad":
                raise ValueError("cannot be packed")
            write(connection, [message])
            connection.execute(
                "select parley.send(%s, 'DEFAULT', %s)", [message.conversation_handle, "packed " + message.text]
            )

    handles = [parley.begin_dialog(connection, "shop", "warehouse") for _ in range(2)]
    with connection.transaction():
        parley.send_batch(connection, handles[0], ["1", "2", "bad", "3"])
        parley.send(connection, handles[1], "4")
    workers.start("Consumer", "warehouse_queue", pack, dsn, poll_interval=0.1)
    until(connection, "select count(*) from done", 3)
    until(connection, "select count(*) from parley.poison_conversations", 1)
    assert connection.execute("select error from parley.poison_conversations").fetchone() == ("cannot be packed",)
    parley.end_conversation(connection, handles[1])
    until(connection, f"select count(*) from parley.conversation_endpoints where state = 'CD' and service_id ="
                      " (select service_id from parley.services where name = 'warehouse')", 1)
    workers.stop()


def test_long_work_is_held_by_a_heartbeat_and_cancelled(workers, connection, dsn):
    began, lost = threading.Event(), threading.Event()
    # A machine may be so slow that a heartbeat comes too late: then the message comes again.
    connection.execute("select parley.alter_queue('jobs', retry => '{\"first\": \"10 ms\", \"attempts\": 1000}')")

    def work(work):
        text = work.messages[0].text
        if text == "cancelled":
            began.set()
            end = time.monotonic() + PATIENCE
            while not work.is_lost and time.monotonic() < end:
                time.sleep(0.01)
            if work.is_lost:
                lost.set()
            work.progress({"step": 2})  # raises
        elif text == "slow":
            time.sleep(1.2)  # longer than the lease
            with work.transaction({"pages": 1}) as connection:
                connection.execute("insert into done values ('slow')")
        elif text == "bad":
            raise parley.Final("not to be done")
        return {"text": text}

    parley.put_batch(connection, "jobs", ["slow", "returned", "bad"])
    workers.start("ClaimConsumer", "jobs", work, dsn, lease=0.9, readers=2, poll_interval=0.1)
    until(connection, "select count(*) from parley.finished_messages", 2)
    until(connection, "select count(*) from parley.set_aside_messages", 1)
    sent = parley.put_each(connection, "jobs", ["cancelled"])
    assert began.wait(PATIENCE)
    assert parley.cancel(connection, "jobs", sent[0].message_id, running=True)
    assert lost.wait(PATIENCE)
    workers.stop()
    results = connection.execute("select result::text from parley.finished_messages order by 1").fetchall()
    assert results == [('{"pages": 1}',), ('{"text": "returned"}',)]
    assert connection.execute("select count(*) from done").fetchone() == (1,)


def test_what_a_handler_sends_carries_its_trace(connection, dsn):
    def work(connection, messages):
        if messages[0].text == "first":
            parley.put(connection, "jobs", "second")
        else:
            connection.execute("insert into done values (%s)", [messages[0].trace_context])

    parley.put(connection, "jobs", "first", trace_context=TRACE)
    threads = Threads()
    threads.start("SimpleConsumer", "jobs", work, dsn)
    until(connection, "select max(job) from done", TRACE)
    threads.stop()
    parley.trace_puts(lambda queue: TRACE)
    try:
        parley.put(connection, "jobs", "traced")
    finally:
        parley.trace_puts(None)
    assert parley.take(connection, "jobs")[0].trace_context == TRACE


def test_a_stop_lets_handlers_finish_and_cuts_off_those_that_do_not(workers, connection, dsn):
    began, release = threading.Event(), threading.Event()

    def work(connection, messages):
        began.set()
        assert release.wait(PATIENCE)
        connection.execute("insert into done values ('finished')")

    parley.put(connection, "jobs", "a")
    workers.start("SimpleConsumer", "jobs", work, dsn, grace_time=PATIENCE)
    assert began.wait(PATIENCE)
    threading.Timer(0.3, release.set).start()
    workers.stop()
    assert connection.execute("select count(*) from done").fetchone() == (1,)
    release.clear()
    began.clear()
    parley.put(connection, "jobs", "b")
    workers.start("SimpleConsumer", "jobs", work, dsn, grace_time=0.1)
    assert began.wait(PATIENCE)
    with pytest.raises(parley.HandlersCutOff, match="1 handlers did not finish"):
        workers.stop()
    release.set()
    until(connection, "select waiting_messages + retrying_messages from parley.simple_queues where queue_name = 'jobs'", 1)
    assert connection.execute("select count(*) from done").fetchone() == (1,)


def test_a_stop_ends_all_sessions_at_once_however_long_the_poll_interval_is(workers, connection, dsn):
    sessions = "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"
    until(connection, sessions, 1)
    for round in range(20):
        workers.start("SimpleConsumer", "jobs", write, dsn, readers=4, poll_interval=3600)
        time.sleep(round / 200)
        workers.stop()
    until(connection, sessions, 1)
    workers.start("ClaimConsumer", "jobs", lambda work: None, dsn, lease=0.3, poll_interval=3600)
    until(connection, sessions, 3)
    workers.stop()
    until(connection, sessions, 1)


def test_a_handler_that_takes_too_long_is_rolled_back(workers, connection, dsn):
    def work(connection, messages):
        connection.execute("insert into done values ('too late')")
        connection.execute("select pg_sleep(20)")

    async def await_work(connection, messages):
        await connection.execute("insert into done values ('too late')")
        await connection.execute("select pg_sleep(20)")

    parley.put(connection, "jobs", "a")
    handler = await_work if isinstance(workers, Tasks) else work
    workers.start("SimpleConsumer", "jobs", handler, dsn, handler_timeout=0.2, poll_interval=0.1)
    until(connection, "select count(*) from parley.set_aside_messages", 1)
    workers.stop()
    assert "longer than its time-out" in connection.execute("select error from parley.set_aside_messages").fetchone()[0]
    assert connection.execute("select count(*) from done").fetchone() == (0,)


def test_paused_readers_take_nothing(workers, connection, dsn):
    connection.execute("select parley.pause_readers('jobs')")
    parley.put(connection, "jobs", "a")
    workers.start("SimpleConsumer", "jobs", write, dsn, poll_interval=0.1)
    time.sleep(0.5)
    assert connection.execute("select count(*) from done").fetchone() == (0,)
    connection.execute("select parley.resume_readers('jobs')")
    until(connection, "select count(*) from done", 1)
    workers.stop()


def test_a_worker_refuses_what_it_cannot_work_with(workers, connection, dsn, monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(ValueError, match="DATABASE_URL"):
        parley.SimpleConsumer("jobs", write)
    with pytest.raises(ValueError, match="queue"):
        parley.SimpleConsumer("", write, conninfo=dsn)
    workers.start("SimpleConsumer", "jobs", write, psycopg.conninfo.make_conninfo(dsn, dbname="template1"))
    with pytest.raises(parley.BrokerUnusable, match="no broker"):
        workers.thread.join(PATIENCE)
        workers.stop()
