 SELECT id FROM message WHERE EXISTS(SELECT author, 1 AS `a` FROM `follower` U0 WHERE (U0.`author` = (`message`.`user_id`) AND U0.`reader` = 7) LIMIT 1) ORDER BY id DESC, id LIMIT 20
