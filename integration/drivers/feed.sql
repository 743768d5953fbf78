-- The tables of an app with a feed, as ORMs' own tools make them, and rows in them: those of `n` are numbers from 0 to 2999.
CREATE TABLE users (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(50) NOT NULL
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE follows (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  follower_id BIGINT NOT NULL,
  followed_id BIGINT NOT NULL,
  UNIQUE KEY (follower_id, followed_id),
  KEY (followed_id)
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE posts (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  user_id BIGINT NOT NULL,
  body VARCHAR(200) NOT NULL,
  created_at DATETIME(6) NOT NULL,
  deleted_at DATETIME(6),
  KEY (user_id, created_at)
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE n (n INT NOT NULL PRIMARY KEY);
INSERT INTO n VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
INSERT INTO n SELECT a.n * 1000 + b.n * 100 + c.n * 10 + d.n FROM n a, n b, n c, n d WHERE a.n < 3 AND a.n + b.n + c.n > 0;
INSERT INTO users SELECT n, CONCAT('user ', n) FROM n WHERE n BETWEEN 1 AND 40;
INSERT INTO follows (follower_id, followed_id)
  SELECT reader.n, author.n FROM n reader, n author
  WHERE reader.n BETWEEN 1 AND 40 AND author.n BETWEEN 1 AND 40 AND (reader.n * 7 + author.n * 11) % 3 = 0;
INSERT INTO posts
  SELECT n + 1, 1 + n * 17 % 40, CONCAT('post ', n + 1), '2026-01-01' + INTERVAL n * 7 DIV 4 SECOND,
    IF(n % 5 = 3, '2026-02-01', NULL)
  FROM n;
DROP TABLE n;
