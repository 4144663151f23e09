import psycopg
import pytest

SERVICES = ("shop", "warehouse")


@pytest.fixture
def dsn(parley_module_dsn):
    return parley_module_dsn


@pytest.fixture
def connection(dsn):
    """A simple queue, two services and a table, in a database that the tests of a module share."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select parley.create_queue('jobs', kind => 'SIMPLE',"
            " retry => '{\"first\": \"10 ms\", \"longest\": \"10 ms\", \"attempts\": 3}')"
        )
        connection.execute("select parley.keep_finished('jobs', '1 hour')")
        for name in SERVICES:
            connection.execute("select parley.create_queue(%s)", [name + "_queue"])
            connection.execute("select parley.create_service(%s, %s, array['DEFAULT'])", [name, name + "_queue"])
        connection.execute("create table done (job text)")
        yield connection
        connection.execute(
            "select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints"
        )
        for name in SERVICES:
            connection.execute("select parley.drop_service(%s)", [name])
            connection.execute("select parley.drop_queue(%s)", [name + "_queue"])
        connection.execute("select parley.drop_queue('jobs', force => true)")
        connection.execute("drop table done")
