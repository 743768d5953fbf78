"""MariaDB's ODBC driver, by pyodbc."""

import pyodbc
from dbapi import TAIL, Teller, arguments

given = arguments()
login = {
    "DRIVER": "MariaDB Unicode",
    "SERVER": given["host"],
    "PORT": given["port"],
    "USER": given["user"],
    "PASSWORD": given["password"],
    "DATABASE": given["database"],
    "OPTION": 1 << 26,
}
if given["tls"]:
    login |= {"SSLCA": given["ca"], "SSLVERIFY": 1}


def connect(login):
    return pyodbc.connect(";".join(f"{name}={{{value}}}" for name, value in login.items()))


connection = connect(login)
for what in (pyodbc.SQL_DBMS_NAME, pyodbc.SQL_DBMS_VER, pyodbc.SQL_DATABASE_NAME, pyodbc.SQL_USER_NAME):
    print(connection.getinfo(what))
teller = Teller(connection, mark="?")
# MySQL does not prepare SHOW WARNINGS; the driver loses its step over that.
teller.script(callproc=False, warnings=False)
teller.run("{CALL fetch_timeline_ids(?)}", 7)
teller.run(TAIL)
teller.run("SELECT LAST_INSERT_ID(), ROW_COUNT()")
teller.told(lambda cursor: cursor.tables(table="message"))
teller.told(lambda cursor: cursor.columns(table="message"))
teller.told(lambda cursor: cursor.primaryKeys("message"))
teller.told(lambda cursor: cursor.executemany("INSERT INTO note (word) VALUES (?)", [("a",), (None,), ("ž",)]))
teller.run("SELECT id, word FROM note ORDER BY id")
connection.close()
try:
    connect(login | {"PASSWORD": "wrong"})
except pyodbc.Error as error:
    print(type(error).__name__, error.args)
