<?php
// mysqli over mysqlnd: text, prepared statements, multi_query.
require __DIR__ . '/tell.php';

function show_result(mysqli $db, $result): void
{
    if ($result instanceof mysqli_result) {
        tell('columns', array_map(
            fn ($f) => [$f->name, $f->orgname, $f->table, $f->db, $f->charsetnr, $f->length, $f->flags, $f->type, $f->decimals],
            $result->fetch_fields()
        ));
        tell('rows', $result->fetch_all());
        $result->free();
    }
    tell('told', [$db->affected_rows, $db->insert_id, $db->warning_count, $db->info, $db->errno, $db->sqlstate]);
}

function prepared(mysqli $db, string $sql, ...$given): void
{
    attempt($sql, function () use ($db, $sql, $given) {
        $statement = $db->prepare($sql);
        $statement->execute($given);
        tell('told', [$statement->param_count, $statement->affected_rows, $statement->insert_id]);
        do {
            $result = $statement->get_result();
            if ($result) {
                show_result($db, $result);
            }
        } while ($statement->more_results() && $statement->next_result());
        $statement->close();
    });
}

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = mysqli_init();
if ($tls) {
    $db->ssl_set(null, null, $ca, null, null);
}
$db->real_connect($host, $user, $password, $database, (int) $port, null, $tls ? MYSQLI_CLIENT_SSL : 0);
$db->set_charset('utf8mb4');
tell('server', [$db->server_info, $db->server_version, $db->protocol_version, $db->character_set_name()]);
foreach (script() as [$sql, $given]) {
    if ($given !== null) {
        prepared($db, $sql, ...$given);
    } else {
        attempt($sql, fn () => show_result($db, $db->query($sql)));
    }
}
attempt('multi', function () use ($db) {
    $db->multi_query('CALL fetch_timeline_ids(7); ' . TAIL . '; SELECT 1; SELECT nothing FROM nowhere; SELECT 2');
    do {
        show_result($db, $db->store_result());
    } while ($db->more_results() && $db->next_result());
});
$db->autocommit(false);
attempt('off', fn () => show_result($db, $db->query('CALL fetch_timeline_ids(7)')));
attempt(TAIL, fn () => show_result($db, $db->query(TAIL, MYSQLI_USE_RESULT)));
$db->rollback();
$db->autocommit(true);
attempt('on', fn () => show_result($db, $db->query('CALL fetch_timeline_ids(7)')));
$db->change_user($user, $password, $database);
attempt(TAIL, fn () => show_result($db, $db->query(TAIL)));
tell('ping', $db->ping());
$db->close();
attempt('wrong password', fn () => new mysqli($host, $user, 'wrong', $database, (int) $port));
