"""mysql-connector-python, in Python alone: text and prepared statements."""

import mysql.connector
from dbapi import TAIL, Teller, arguments

COLUMNS = "id, small, large, price, ratio, flag, day, moment, span, word, body, raw, picture, kind"

given = arguments()
login = {name: given[name] for name in ("host", "port", "user", "password", "database")}
if given["tls"]:
    login |= {"ssl_ca": given["ca"], "ssl_verify_cert": True, "ssl_verify_identity": True}
else:
    login |= {"ssl_disabled": True}
connection = mysql.connector.connect(**login, use_pure=True, get_warnings=True)
print(connection.server_info, connection.charset, connection.collation)
teller = Teller(connection)
teller.script()
for parameters in (("Zoë", 1, None), (7, 2.5, b"\x00\xff"), (None, None, None)):
    teller.run("SELECT ?, ?, ?", *parameters, prepared=True)
teller.run("INSERT INTO note (word, amount) VALUES (?, ?)", "prepared", 9, prepared=True)
# Without the year: the driver takes a binary one for a string.
teller.run(f"SELECT {COLUMNS} FROM sample WHERE id < ? ORDER BY id", 4, prepared=True)
teller.run("CALL fetch_timeline_ids(?)", 4, prepared=True)
teller.run(TAIL, prepared=True)
teller.run("CALL fetch_timeline_ids(7)")
teller.run(TAIL, buffered=True, dictionary=True)
connection.ping(reconnect=False)
connection.cmd_reset_connection()
teller.run(TAIL)
connection.cmd_change_user(given["user"], given["password"], given["database"])
teller.run("CALL fetch_timeline_ids2(7, 6000)")
teller.run(TAIL)
connection.close()
try:
    mysql.connector.connect(**(login | {"password": "wrong"}), use_pure=True)
except mysql.connector.Error as error:
    print(type(error).__name__, error.args, error.errno, error.sqlstate)
