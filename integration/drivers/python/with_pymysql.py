"""PyMySQL: text protocol only, in Python alone."""

import warnings

import pymysql
from dbapi import TAIL, Teller, arguments
from pymysql.constants import CLIENT

given = arguments()
connection = pymysql.connect(
    host=given["host"],
    port=given["port"],
    user=given["user"],
    password=given["password"],
    database=given["database"],
    charset="utf8mb4",
    client_flag=CLIENT.MULTI_STATEMENTS,
    ssl_disabled=not given["tls"],
    ssl={"ca": given["ca"]} if given["tls"] else None,
)
warnings.simplefilter("ignore")
print(connection.get_server_info(), connection.get_proto_info(), connection.character_set_name())
teller = Teller(connection)
teller.script()
print(connection.show_warnings())
connection.ping(reconnect=False)
# A result that is read row by row, and left before its end.
teller.run("CALL fetch_timeline_ids(7)")
cursor = connection.cursor(pymysql.cursors.SSCursor)
cursor.execute(TAIL)
print(cursor.fetchone(), cursor.fetchmany(2))
cursor.close()
connection.select_db("information_schema")
teller.run("SELECT DATABASE()")
connection.close()
try:
    pymysql.connect(host=given["host"], port=given["port"], user=given["user"], password="wrong", ssl_disabled=True)
except pymysql.MySQLError as error:
    print(type(error).__name__, error.args)
