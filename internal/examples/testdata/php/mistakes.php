<?php
// What PDO sends without an error, and not as it was meant. Of an array PHP itself warns.
require __DIR__ . '/connect.php';

$connection = connect();
$handle = run($connection, "select parley.begin_dialog('shop', 'warehouse') as handle")[0]['handle'];
foreach ([['?', "ab\x00cd"], ['?', ['a']], ['?', false], ['?::bytea', "ab\x00cd"], ['?::bytea', '\x6162']] as [$parameter, $body]) {
    @run($connection, "select parley.send(?, ?, $parameter)", [$handle, 'DEFAULT', $body]);
}
