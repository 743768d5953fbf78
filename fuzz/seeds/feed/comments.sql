 SELECT id FROM message /* newest */ WHERE user_id IN (?, ?, ?) AND id BETWEEN 5 AND 90 -- so
 ORDER BY id DESC # LIMIT 3
 LIMIT 20