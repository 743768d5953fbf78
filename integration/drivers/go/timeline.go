// The script of all drivers, told through go-sql-driver/mysql: text and prepared statements.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/go-sql-driver/mysql"
)

const tail = "SELECT message.id,user_id,body FROM message " +
	"INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20"
const digits = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' " +
	"FROM digit a, digit b, digit c, digit e ORDER BY n"

func main() {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", os.Args[1]+":"+os.Args[2]
	config.User, config.Passwd, config.DBName = os.Args[3], os.Args[4], os.Args[5]
	config.MultiStatements = true
	if os.Args[6] == "1" {
		pem, _ := os.ReadFile(os.Args[7])
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		mysql.RegisterTLSConfig("story", &tls.Config{RootCAs: roots, ServerName: os.Args[1]})
		config.TLSConfig = "story"
	}
	on := open(config)
	query(on, "SELECT VERSION(), DATABASE(), CURRENT_USER()")
	query(on, "SHOW STATUS LIKE 'Ssl_version'")
	query(on, "SELECT * FROM sample ORDER BY id")
	query(on, "SELECT * FROM sample WHERE id < ? ORDER BY id", 4)
	query(on, "SELECT nothing FROM nowhere")
	query(on, "THIS IS NO SQL")
	exec(on, "INSERT INTO note (word, amount) VALUES ('één 東京', 1), (NULL, NULL)")
	exec(on, "INSERT INTO note (word, amount) VALUES (?, ?)", "prepared", nil)
	exec(on, "INSERT INTO note (id) VALUES (1)")
	query(on, "SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id", "Zoë", 1, nil)
	query(on, "SELECT CAST('12x' AS SIGNED)")
	query(on, "SHOW WARNINGS")
	for _, call := range []string{"CALL fetch_timeline_ids(7)", "call `fetch_timeline_ids2`( 7 , 6000 ) -- page",
		"CALL fetch_timeline_ids(999)", "CALL fetch_timeline_ids(1, 2, 3)"} {
		exec(on, call)
		query(on, tail)
		query(on, call)
		query(on, tail)
		query(on, "SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt")
	}
	exec(on, "CALL build_max_ids_of_followers(?, ?)", 7, 5000)
	query(on, "SELECT * FROM max_ids_of_followers ORDER BY max_id DESC LIMIT 5")
	exec(on, "CALL fetch_timeline_ids(?)", 4)
	query(on, tail)
	exec(on, "CALL fetch_timeline_ids2(?, ?)", 7, 6000)
	query(on, tail+" OFFSET ?", 1)
	query(on, "CALL fetch_timeline_ids(7); "+tail+"; SELECT 1")
	transaction, _ := on.BeginTx(ctx, nil)
	exec(on, "INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')")
	exec(on, "CALL fetch_timeline_ids(7)")
	query(on, tail)
	transaction.Rollback()
	exec(on, "INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')")
	exec(on, "CALL fetch_timeline_ids(7)")
	query(on, tail)
	exec(on, "SET autocommit = 0")
	exec(on, "CALL fetch_timeline_ids(7)")
	query(on, tail)
	exec(on, "SET autocommit = 1")
	query(on, "SELECT id, word, amount FROM note ORDER BY id")
	query(on, digits)
	query(on, "SELECT REPEAT('x', ?) AS long_one", 1000000)
	fmt.Println("ping", on.PingContext(ctx))
	on.Close()
	config.Passwd = "wrong"
	open(config)
}
