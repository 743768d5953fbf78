SELECT VERSION(), DATABASE(), CURRENT_USER();
SHOW STATUS LIKE 'Ssl_version';
SELECT * FROM sample ORDER BY id;
SELECT nothing FROM nowhere;
THIS IS NO SQL;
INSERT INTO note (word, amount) VALUES ('één', 1), (NULL, NULL);
SELECT LAST_INSERT_ID(), ROW_COUNT();
INSERT INTO note (id) VALUES (1);
UPDATE note SET amount = 5 WHERE id < 3;
SELECT CAST('12x' AS SIGNED);
SHOW WARNINGS;
PREPARE words FROM 'SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id';
SET @given = 'Zoë', @id = 1, @word = NULL;
EXECUTE words USING @given, @id, @word;
DEALLOCATE PREPARE words;
CALL fetch_timeline_ids(7);
SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20;
CALL fetch_timeline_ids2(7, 6000);
SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20;
SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt;
CALL build_max_ids_of_followers(7, 5000);
SELECT * FROM max_ids_of_followers ORDER BY max_id DESC LIMIT 5;
CALL fetch_timeline_ids(999);
SHOW WARNINGS;
SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20;
CALL fetch_timeline_ids('seven');
CALL fetch_timeline_ids(1, 2, 3);
PREPARE timeline FROM 'CALL fetch_timeline_ids(?)';
SET @reader = 4;
EXECUTE timeline USING @reader;
SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20;
DELIMITER //
CALL fetch_timeline_ids(7); SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20//
DELIMITER ;
BEGIN;
INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back');
CALL fetch_timeline_ids(7);
SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 3;
ROLLBACK;
INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept');
CALL fetch_timeline_ids(7);
SELECT message.id,user_id,body FROM message
  INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 3;
SET autocommit = 0;
INSERT INTO note (word) VALUES ('lost');
CALL fetch_timeline_ids(7);
SELECT COUNT(*) FROM fetch_timeline_tt;
ROLLBACK;
SET autocommit = 1;
SELECT id, word, amount FROM note ORDER BY id;
SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, CONCAT('row ', a.d, b.d, c.d, e.d) AS word
  FROM digit a, digit b, digit c, digit e ORDER BY n;
