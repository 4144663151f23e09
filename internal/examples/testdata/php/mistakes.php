<?php
// What PDO sends without an error, and not as it was meant. Of an array PHP itself warns.
require __DIR__ . '/connect.php';

$connection = connect();
$handle = run($connection, "select parley.begin_dialog('shop', 'warehouse') as handle")[0]['handle'];
foreach ([['send', "ab\x00cd"], ['send', ['a']], ['send', false], ['send_binary', "ab\x00cd"], ['send_binary', '\x6162']] as [$call, $body]) {
    @run($connection, "select parley.$call(?, ?, ?)", [$handle, 'DEFAULT', $body]);
}
