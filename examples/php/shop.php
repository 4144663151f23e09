<?php
// The shop takes five orders and waits until the warehouse has packed them, with PDO.
require __DIR__ . '/connect.php';

$connection = connect();
for ($i = 0; $i < 5; $i++) {
    // The order and its message are committed together, or neither is.
    $connection->beginTransaction();
    $handle = run($connection, 'select parley.begin_dialog(?, ?) as handle', ['shop', 'warehouse'])[0]['handle'];
    $order = run($connection, 'insert into orders (conversation_handle) values (?) returning order_id', [$handle])[0]['order_id'];
    run($connection, 'select parley.send(?, ?, ?)', [$handle, 'DEFAULT', $order]);
    $connection->commit();
}

while (run($connection, 'select 1 from orders where not is_packed') !== []) {
    // Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
    $connection->exec("call parley.wait_for_message('shop_queue', 5000)");
    $connection->beginTransaction();
    foreach (run($connection, "select * from parley.receive('shop_queue')") as $message) {
        if ($message['message_type_name'] === 'DEFAULT') {
            run($connection, 'update orders set is_packed = true where conversation_handle = ?', [$message['conversation_handle']]);
        }
        run($connection, 'select parley.end_conversation(?)', [$message['conversation_handle']]);
    }
    $connection->commit();
}
