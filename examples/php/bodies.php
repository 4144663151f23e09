<?php
// Sends one body of each kind: which call takes which value.
require __DIR__ . '/connect.php';

$connection = connect();
$connection->beginTransaction();
$handle = run($connection, 'select parley.begin_dialog(?, ?) as handle', ['shop', 'warehouse'])[0]['handle'];

run($connection, 'select parley.send(?, ?, ?)', [$handle, 'DEFAULT', 'chair']);

// Only PARAM_LOB carries bytes: as a string they end at the first zero byte.
$prepared = $connection->prepare('select parley.send(?, ?, ?::bytea)');
$prepared->bindValue(1, $handle);
$prepared->bindValue(2, 'DEFAULT');
$prepared->bindValue(3, "\x00\xff", PDO::PARAM_LOB);
$prepared->execute();

run($connection, 'select parley.send(?, ?, ?::jsonb)', [$handle, 'DEFAULT', json_encode(['seats' => [1, 2]])]);
run($connection, 'select parley.send(?, ?, ?::jsonb)', [$handle, 'DEFAULT', json_encode([1, 2])]);

// PDO knows no arrays; a list travels as JSON, and its bytes as base64.
$texts = 'array(select json_array_elements_text(?))';
$bytes = "array(select decode(b.body, 'base64') from json_array_elements_text(?) as b (body))";
run($connection, "select parley.send_batch(?, ?, $texts)", [$handle, 'DEFAULT', json_encode(['a', 'b'])]);
run($connection, "select parley.send_batch_binary(?, ?, $bytes)", [$handle, 'DEFAULT', json_encode(array_map('base64_encode', ["\x00", "\xff"]))]);
run($connection, "select parley.send_batch(?, ?, $texts)", [$handle, 'DEFAULT', json_encode(array_map('json_encode', [['a' => 1], [2]]))]);
$connection->commit();
