<?php
// PDO over mysqlnd, with prepared statements that the server prepares and with those it makes up itself.
require __DIR__ . '/tell.php';

function show_result(PDO $db, PDOStatement $statement): void
{
    do {
        $columns = [];
        for ($i = 0; $i < $statement->columnCount(); $i++) {
            $columns[] = $statement->getColumnMeta($i);
        }
        tell('columns', $columns);
        tell('rows', $columns ? $statement->fetchAll(PDO::FETCH_NUM) : []);
        tell('told', [$statement->rowCount(), $db->lastInsertId(), $statement->errorInfo()]);
    } while ($statement->nextRowset());
    $statement->closeCursor();
}

$options = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION];
if ($tls) {
    $options[PDO::MYSQL_ATTR_SSL_CA] = $ca;
}
$dsn = "mysql:host=$host;port=$port;dbname=$database;charset=utf8mb4";
foreach ([true, false] as $emulated) {
    $db = new PDO($dsn, $user, $password, $options + [PDO::ATTR_EMULATE_PREPARES => $emulated]);
    tell('server', [$emulated, $db->getAttribute(PDO::ATTR_SERVER_VERSION), $db->getAttribute(PDO::ATTR_CLIENT_VERSION)]);
    $db->exec('TRUNCATE note');
    $db->exec('DELETE FROM message WHERE id > 10000');
    foreach (script() as [$sql, $given]) {
        attempt($sql, function () use ($db, $sql, $given) {
            $statement = $given === null ? $db->query($sql) : $db->prepare($sql);
            if ($given !== null) {
                $statement->execute($given);
            }
            show_result($db, $statement);
        });
    }
    attempt('multi', function () use ($db) {
        show_result($db, $db->query('CALL fetch_timeline_ids(7); ' . TAIL . '; SELECT 1'));
    });
    $db->beginTransaction();
    attempt('begun', fn () => show_result($db, $db->query('CALL fetch_timeline_ids(7)')));
    attempt(TAIL, fn () => show_result($db, $db->query(TAIL)));
    $db->rollBack();
    tell('exec', $db->exec('CALL fetch_timeline_ids(7)'));
    attempt(TAIL, fn () => show_result($db, $db->query(TAIL)));
    $db = null;
}
attempt('wrong password', fn () => new PDO($dsn, $user, 'wrong', $options));
