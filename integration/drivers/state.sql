-- What every run begins with, beside the classic timeline's tables and procedures.
-- What stands below "again" is told before each run.

CREATE TABLE sample (
  id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  small tinyint, large bigint unsigned, price decimal(20,6), ratio double, flag bit(8),
  day date, moment datetime(6), span time, made year,
  word varchar(40) CHARACTER SET utf8mb4, body text CHARACTER SET utf8mb4, raw varbinary(16), picture blob,
  kind enum('one','two')
);
INSERT INTO sample VALUES
  (1, -7, 18446744073709551615, 12345678901234.567890, 0.5, b'101', '2024-02-29', '2024-02-29 23:59:58.123456',
   '-11:22:33', 2024, 'Zoë, 東京, 🦔', REPEAT('long ', 100), x'00ff7f80', x'0001fe', 'two'),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, 0, 0, 0, 0, 0, '1970-01-01', '1970-01-01', 0, 1970, '', '', '', '', 'one');

CREATE TABLE digit (d int NOT NULL PRIMARY KEY);
INSERT INTO digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);

CREATE TABLE note (
  id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  word varchar(40) CHARACTER SET utf8mb4, amount int
);

-- So many that MySQL's plan for the tail does not hang on how it estimates the table.
INSERT INTO message (id, user_id, body)
  SELECT n, 1 + n * 7919 % 97, CONCAT('message ', n, ' of ž')
  FROM (SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n FROM digit a, digit b, digit c, digit e) AS numbers
  ORDER BY n;
INSERT INTO follower (user_id, follower_id) SELECT 7, 1 + a.d + 9 * b.d FROM digit a, digit b WHERE a.d < 9 AND b.d < 4;
INSERT INTO follower (user_id, follower_id) VALUES (4, 6), (4, 90);
-- again
TRUNCATE note;
DELETE FROM message WHERE id > 10000;
