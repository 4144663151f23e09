"""The warehouse packs each order that the shop sends, with psycopg. It may be stopped, or killed, at any time."""

import logging
import os
import signal
import time

import psycopg

END_DIALOG = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
ERROR = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"

log = logging.getLogger("warehouse")


def handle(connection, message):
    if message.message_type_name in (END_DIALOG, ERROR):
        connection.execute("select parley.end_conversation(%s)", [message.conversation_handle])
        return
    order = message.body
    connection.execute("insert into parcels (order_id) values (%s)", [int(order)])
    connection.execute("select parley.send(%s, %s, %s)", [message.conversation_handle, "DEFAULT", order])


def receive(connection, top):
    """Receives and handles in one transaction: what fails, or is killed, is received again. Gives how many to take next."""
    handle_of_failure = None
    try:
        with connection.transaction():
            cursor = connection.cursor(row_factory=psycopg.rows.namedtuple_row)
            messages = cursor.execute(
                "select conversation_handle, message_type_name, parley.body_text(message_body) as body"
                " from parley.receive('warehouse_queue', top => %s) order by queuing_order",
                [top],
            ).fetchall()
            for message in messages:
                handle_of_failure = message.conversation_handle
                handle(connection, message)
        if not messages:
            # Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
            connection.execute("call parley.wait_for_message('warehouse_queue', 5000)")
        return 10
    except (psycopg.errors.Error, ValueError) as error:
        if connection.closed or handle_of_failure is None:
            raise
        state = getattr(error, "sqlstate", None)
        text = error.diag.message_primary if state else str(error)
        log.error("%s: %s (%s)", handle_of_failure, text, state)
        # In a transaction of its own: a message that keeps failing is set aside, and this says why.
        connection.execute("select parley.record_failure(%s, %s, %s)", [handle_of_failure, state, text])
        # One at a time: what stands in front of it is done, and it alone fails the next time.
        return 1


def main():
    logging.basicConfig(level=logging.INFO)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    connection, top = None, 10
    while not stopped:
        try:
            if connection is None or connection.closed:
                connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
                log.info("reading")
            top = receive(connection, top)
        except psycopg.OperationalError as error:
            log.warning("the database is away: %s", error)
            time.sleep(1)
            connection = None


if __name__ == "__main__":
    main()
