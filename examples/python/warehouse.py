"""The warehouse packs each order that the shop sends, with the package parley. It may be stopped, or killed, at any time."""

import logging

import parley


def pack(connection, messages):
    for order in messages:
        connection.execute("insert into parcels (order_id) values (%s)", [int(order.text)])
        parley.send(connection, order.conversation_handle, order.text)


logging.basicConfig(level=logging.INFO)
parley.Consumer("warehouse_queue", pack, top=10).run()
