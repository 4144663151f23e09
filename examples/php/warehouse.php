<?php
// The warehouse packs each order that the shop sends, with PDO. It may be stopped, or killed, at any time.
require __DIR__ . '/connect.php';

const ENDS = [
    'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog',
    'http://schemas.microsoft.com/SQL/ServiceBroker/Error',
];

function handle(PDO $connection, array $message): void
{
    if (in_array($message['message_type_name'], ENDS, true)) {
        run($connection, 'select parley.end_conversation(?)', [$message['conversation_handle']]);
        return;
    }
    run($connection, 'insert into parcels (order_id) values (?)', [$message['body']]);
    run($connection, 'select parley.send(?, ?, ?)', [$message['conversation_handle'], 'DEFAULT', $message['body']]);
}

// Receives and handles in one transaction: what fails, or is killed, is received again. Gives how many to take next.
function receive(PDO $connection, int $top): int
{
    $current = null;
    $connection->beginTransaction();
    try {
        $messages = run($connection, "select conversation_handle, message_type_name, parley.body_text(message_body) as body
            from parley.receive('warehouse_queue', top => ?) order by queuing_order", [$top]);
        foreach ($messages as $current) {
            handle($connection, $current);
        }
        $connection->commit();
        if ($messages === []) {
            // Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
            $connection->exec("call parley.wait_for_message('warehouse_queue', 5000)");
        }
        return 10;
    } catch (PDOException $error) {
        if ($current === null) {
            throw $error;
        }
        $connection->rollBack();
        // The text of PDO has the detail, the hint and the context behind the message.
        [$state, , $text] = $error->errorInfo;
        $text = strtok($text, "\n");
        fwrite(STDERR, "{$current['conversation_handle']}: $text ($state)\n");
        // In a transaction of its own: a message that keeps failing is set aside, and this says why.
        run($connection, 'select parley.record_failure(?, ?, ?)', [$current['conversation_handle'], $state, $text]);
        // One at a time: what stands in front of it is done, and it alone fails the next time.
        return 1;
    }
}

while (true) {
    try {
        $connection = connect();
        echo "reading\n";
        for ($top = 10;;) {
            $top = receive($connection, $top);
        }
    } catch (PDOException $error) {
        fwrite(STDERR, 'the database is away: ' . strtok($error->getMessage(), "\n") . "\n");
        $connection = null;
        sleep(1);
    }
}
