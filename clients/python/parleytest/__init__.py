"""Fixtures of pytest for programs that use Parley: a private server, and a fresh database for each test.

PARLEY_TEST_DSN names a database of a server of your own, on which databases may be created. Without it the command
parley, or the one that PARLEY names, starts a private PostgreSQL that lives as long as the tests. A database that has no
schema parley yet is given one by that command, under the name parley_template.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg import conninfo, sql

_numbers = itertools.count(1)


def _command() -> str:
    found = shutil.which(os.environ.get("PARLEY", "parley"))
    if not found:
        pytest.fail(
            "the command parley is not on the PATH: install it or name it by PARLEY, or name a database with the schema"
            " parley by PARLEY_TEST_DSN"
        )
    return found


@pytest.fixture(scope="session")
def parley_server() -> Iterator[str]:
    """The conninfo of a database with the schema parley that nobody uses: the template of the others."""
    given = os.environ.get("PARLEY_TEST_DSN")
    if given:
        yield _template(given)
        return
    with tempfile.TemporaryDirectory(prefix="parleytest-") as folder:
        os.chmod(folder, 0o711)
        with subprocess.Popen(
            [_command(), "up", "--tcp", "--json", "--data", os.path.join(folder, "data")],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        ) as server:
            try:
                assert server.stdout is not None
                line = server.stdout.readline()
                if not line:
                    pytest.fail(f"parley up ended with code {server.wait()}; it says why above")
                yield _template(json.loads(line)["tcp_dsn"])
            finally:
                server.terminate()
                server.wait(timeout=60)


def _template(dsn: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        if _has_schema(connection):
            return dsn
        template = conninfo.make_conninfo(dsn, dbname="parley_template")
        exists = connection.execute("select 1 from pg_database where datname = 'parley_template'").fetchone()
        if not exists:
            connection.execute("create database parley_template")
    with psycopg.connect(template, autocommit=True) as connection:
        has_schema = _has_schema(connection)
    if not has_schema:
        uri = _uri(template)
        subprocess.run([_command(), "install", "--dsn", uri], check=True, stdout=subprocess.DEVNULL)
    return template


def _has_schema(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("select to_regproc('parley.attach_broker') is not null").fetchone() == (True,)


def _uri(dsn: str) -> str:
    parts = conninfo.conninfo_to_dict(dsn)
    user = quote(str(parts.pop("user", "")), safe="")
    password = parts.pop("password", None)
    if password:
        user += ":" + quote(str(password), safe="")
    database = quote(str(parts.pop("dbname", "")), safe="")
    return f"postgres://{user}{'@' if user else ''}/{database}?" + urlencode({key: str(value) for key, value in parts.items()})


@contextlib.contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """Makes a database as a copy of the template, with a broker of its own, and drops it in the end; gives its conninfo."""
    name = f"parleytest_{os.getpid()}_{next(_numbers)}"
    template = str(conninfo.conninfo_to_dict(server)["dbname"])
    maintenance = conninfo.make_conninfo(server, dbname="postgres")
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    dsn = conninfo.make_conninfo(server, dbname=name)
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            # A copy of a database is no broker until somebody says so.
            connection.execute("select parley.new_broker()")
        yield dsn
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def parley_dsn(parley_server: str) -> Iterator[str]:
    """The conninfo of a fresh database with the schema parley, for one test."""
    with fresh_database(parley_server) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def parley_module_dsn(parley_server: str) -> Iterator[str]:
    """The same for all tests of a module, which is quicker."""
    with fresh_database(parley_server) as dsn:
        yield dsn


@pytest.fixture
def parley_connection(parley_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the fresh database, with autocommit."""
    with psycopg.connect(parley_dsn, autocommit=True) as connection:
        yield connection
