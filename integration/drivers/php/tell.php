<?php
// What the programs of both of PHP's drivers share: arguments, script, and how a result is printed.
[, $host, $port, $user, $password, $database, $tls, $ca] = $argv;
$tls = $tls === '1';

const TAIL = 'SELECT message.id,user_id,body FROM message '
    . 'INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20';

function tell(string $title, $what): void
{
    $text = json_encode($what, JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE);
    echo $title, ' ', strlen($text) > 20000 ? strlen($text) . ' bytes, ' . crc32($text) : $text, "\n";
}

function attempt(string $title, callable $work): void
{
    echo "-- $title\n";
    try {
        $work();
    } catch (mysqli_sql_exception $error) {
        tell('error', [$error->getCode(), $error->getSqlState(), $error->getMessage()]);
    } catch (PDOException $error) {
        tell('error', [$error->getCode(), $error->errorInfo, $error->getMessage()]);
    }
}

/** Statements with what they are given; null: not prepared. */
function script(): array
{
    return [
        ['SELECT VERSION(), DATABASE(), CURRENT_USER()', null],
        ["SHOW STATUS LIKE 'Ssl_version'", null],
        ['SELECT * FROM sample ORDER BY id', null],
        ['SELECT * FROM sample WHERE id < ? ORDER BY id', [4]],
        ['SELECT nothing FROM nowhere', null],
        ['THIS IS NO SQL', null],
        ["INSERT INTO note (word, amount) VALUES ('één 東京', 1), (NULL, NULL)", null],
        ['INSERT INTO note (id) VALUES (1)', null],
        ['UPDATE note SET amount = 5 WHERE id < 3', null],
        ['INSERT INTO note (word, amount) VALUES (?, ?)', ['prepared', 9]],
        ['SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id', ['Zoë', 1, null]],
        ["SELECT CAST('12x' AS SIGNED)", null],
        ['SHOW WARNINGS', null],
        ['CALL fetch_timeline_ids(7)', null],
        [TAIL, null],
        ['call `fetch_timeline_ids2`( 7 , 6000 ) # page', null],
        [TAIL, null],
        ['SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt', null],
        ['CALL fetch_timeline_ids(999)', null],
        ['SHOW WARNINGS', null],
        [TAIL, null],
        ['CALL fetch_timeline_ids(1, 2, 3)', null],
        ['CALL fetch_timeline_ids(?)', [4]],
        [TAIL, []],
        ['CALL fetch_timeline_ids2(?, ?)', [7, 6000]],
        [TAIL, null],
        ['BEGIN', null],
        ["INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')", null],
        ['CALL fetch_timeline_ids(7)', null],
        [TAIL, null],
        ['ROLLBACK', null],
        ["INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')", null],
        ['CALL fetch_timeline_ids(7)', null],
        [TAIL, null],
        ['SELECT id, word, amount FROM note ORDER BY id', null],
        ["SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' FROM digit a, digit b, digit c, digit e ORDER BY n", null],
        ["SELECT REPEAT('x', ?) AS long_one", [1000000]],
    ];
}
