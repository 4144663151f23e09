<?php
// PDO takes no address of a database; this makes its own form of one.
function connect(): PDO
{
    $url = parse_url(getenv('DATABASE_URL'));
    $dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s', $url['host'], $url['port'] ?? 5432, ltrim($url['path'], '/'));
    return new PDO($dsn, $url['user'] ?? null, $url['pass'] ?? null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function run(PDO $connection, string $statement, array $parameters = []): array
{
    $prepared = $connection->prepare($statement);
    $prepared->execute($parameters);
    return $prepared->fetchAll(PDO::FETCH_ASSOC);
}
