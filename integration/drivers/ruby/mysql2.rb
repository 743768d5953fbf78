# mysql2 for Ruby, over MariaDB's C library.
require "digest"
require "mysql2"

HOST, PORT, USER, PASSWORD, DATABASE, TLS, CA = ARGV
TAIL = "SELECT message.id,user_id,body FROM message " \
       "INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20"
DIGITS = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' " \
         "FROM digit a, digit b, digit c, digit e ORDER BY n"
LOGIN = {
  host: HOST, port: PORT.to_i, username: USER, password: PASSWORD, database: DATABASE, encoding: "utf8mb4",
  flags: Mysql2::Client::MULTI_STATEMENTS
}
LOGIN.update(sslca: CA, sslverify: true) if TLS == "1"

def print_result(result)
  return unless result
  # First of all: with the rows the driver frees the fields.
  puts result.fields.inspect
  rows = result.map(&:values).inspect
  rows = Digest::SHA256.hexdigest(rows) if rows.size > 20_000
  puts rows
end

def told(title)
  puts "-- #{title}"
  yield
rescue Mysql2::Error => e
  puts [e.class, e.error_number, e.sql_state, e.message].inspect
end

def query(db, sql, **options)
  told(sql) do
    print_result(db.query(sql, **options))
    puts [db.affected_rows, db.last_id, db.warning_count, db.query_info].inspect
    while db.next_result
      print_result(db.store_result)
      puts [db.affected_rows, db.last_id].inspect
    end
  end
end

def execute(db, sql, *given)
  told(sql) do
    statement = db.prepare(sql)
    puts [statement.param_count, statement.field_count].inspect
    print_result(statement.execute(*given))
    puts [statement.affected_rows, statement.last_id].inspect
    statement.close
  end
end

db = Mysql2::Client.new(**LOGIN)
puts db.server_info.inspect
query(db, "SELECT VERSION(), DATABASE(), CURRENT_USER()")
query(db, "SHOW STATUS LIKE 'Ssl_version'")
query(db, "SELECT * FROM sample ORDER BY id")
execute(db, "SELECT * FROM sample WHERE id < ? ORDER BY id", 4)
query(db, "SELECT nothing FROM nowhere")
query(db, "THIS IS NO SQL")
query(db, "INSERT INTO note (word, amount) VALUES ('één 東京', 1), (NULL, NULL)")
query(db, "INSERT INTO note (id) VALUES (1)")
query(db, "UPDATE note SET amount = 5 WHERE id < 3")
execute(db, "INSERT INTO note (word, amount) VALUES (?, ?)", "prepared", 9)
execute(db, "SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id", "Zoë", 1, nil)
query(db, "SELECT CAST('12x' AS SIGNED)")
query(db, "SHOW WARNINGS")
["CALL fetch_timeline_ids(7)", "call `fetch_timeline_ids2`( 7 , 6000 );", "CALL fetch_timeline_ids(999)"].each do |call|
  query(db, call)
  query(db, TAIL)
  query(db, TAIL, stream: true, cache_rows: false)
  query(db, "SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt")
end
query(db, "CALL fetch_timeline_ids(1, 2, 3)")
execute(db, "CALL fetch_timeline_ids(?)", 4)
execute(db, TAIL)
query(db, "CALL fetch_timeline_ids(7)")
execute(db, TAIL)
query(db, "CALL fetch_timeline_ids(7); #{TAIL}; SELECT 1")
query(db, "BEGIN")
query(db, "INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')")
query(db, "CALL fetch_timeline_ids(7)")
query(db, TAIL)
query(db, "ROLLBACK")
query(db, "INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')")
query(db, "CALL fetch_timeline_ids(7)")
query(db, TAIL)
query(db, "SET autocommit = 0")
query(db, "CALL fetch_timeline_ids(7)")
query(db, TAIL)
query(db, "SET autocommit = 1")
query(db, "SELECT id, word, amount FROM note ORDER BY id")
query(db, DIGITS)
execute(db, "SELECT REPEAT('x', ?) AS long_one", 1_000_000)
told("ping") { puts db.ping }
told("select_db") { db.select_db("information_schema") }
query(db, "SELECT DATABASE()")
db.close
told("wrong password") { Mysql2::Client.new(**LOGIN, password: "wrong") }
