"""mysqlclient (MySQLdb), over MariaDB's C library."""

import MySQLdb
import MySQLdb.cursors
from dbapi import TAIL, Teller, arguments
from MySQLdb.constants import CLIENT

given = arguments()
connection = MySQLdb.connect(
    host=given["host"],
    port=given["port"],
    user=given["user"],
    password=given["password"],
    database=given["database"],
    charset="utf8mb4",
    client_flag=CLIENT.MULTI_STATEMENTS,
    # No word of it at all without TLS: with `ssl=None` this driver asks for it too.
    **({"ssl": {"ca": given["ca"]}} if given["tls"] else {}),
)
print(connection.get_server_info(), connection.get_proto_info(), connection.character_set_name())
teller = Teller(connection)
teller.script()
print(connection.info(), connection.warning_count(), connection.show_warnings())
connection.ping()
teller.run("CALL fetch_timeline_ids(7)")
# A result that is read row by row.
teller.run(TAIL, cursorclass=MySQLdb.cursors.SSCursor)
connection.change_user(given["user"], given["password"], given["database"])
teller.run(TAIL)
teller.run("CALL fetch_timeline_ids(7)")
teller.run(TAIL)
connection.select_db("information_schema")
teller.run("SELECT DATABASE()")
connection.close()
try:
    MySQLdb.connect(host=given["host"], port=given["port"], user=given["user"], password="wrong")
except MySQLdb.Error as error:
    print(type(error).__name__, error.args)
