"""The script of all drivers, as far as Python's DB-API goes. What a driver has beyond it stands in its own file."""

import sys
import zlib

TAIL = (
    "SELECT message.id,user_id,body FROM message "
    "INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20"
)
DIGITS = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' FROM digit a, digit b, digit c, digit e ORDER BY n"


def arguments():
    names = ("host", "port", "user", "password", "database", "tls", "ca")
    given = dict(zip(names, sys.argv[1:]))
    return given | {"port": int(given["port"]), "tls": given["tls"] == "1"}


class Teller:
    """Prints all that cursors of one connection let a program see."""

    def __init__(self, connection, mark="%s", **cursor):
        self.connection, self.mark, self.cursor = connection, mark, cursor

    def run(self, sql, *given, **cursor):
        return self.told(lambda c: c.execute(sql.replace("?", self.mark), given) if given else c.execute(sql), **cursor)

    def call(self, name, *given):
        self.told(lambda c: print("callproc", c.callproc(name, given)))

    def told(self, work, **options):
        cursor = self.connection.cursor(**(self.cursor | options))
        try:
            work(cursor)
            self.results(cursor)
            cursor.close()
        except Exception as error:
            print(type(error).__name__, error.args, getattr(error, "sqlstate", None))

    def results(self, cursor):
        while True:
            print("columns", [tuple(column) for column in cursor.description or []])
            rows = cursor.fetchall() if cursor.description else []
            if len(rows) > 100:
                print(len(rows), "rows", zlib.crc32(repr(rows).encode()))
            else:
                print(*rows, sep="\n")
            print("count", cursor.rowcount, "id", getattr(cursor, "lastrowid", None))
            if not cursor.nextset():
                break

    def script(self, callproc=True, warnings=True):
        run, connection = self.run, self.connection
        self.autocommit(True)
        run("SELECT VERSION(), DATABASE(), CURRENT_USER()")
        run("SHOW STATUS LIKE 'Ssl_version'")
        run("SELECT * FROM sample ORDER BY id")
        run("SELECT nothing FROM nowhere")
        run("THIS IS NO SQL")
        run("INSERT INTO note (word, amount) VALUES (?, ?), (?, ?)", "één 東京", 1, None, None)
        run("INSERT INTO note (id) VALUES (1)")
        run("UPDATE note SET amount = 5 WHERE id < 3")
        run("SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id", "Zoë", 1, None)
        run("SELECT CAST('12x' AS SIGNED)")
        if warnings:
            run("SHOW WARNINGS")
        for call in ("CALL fetch_timeline_ids(7)", "call `fetch_timeline_ids2`( 7 , 6000 ) -- page"):
            run(call)
            run(TAIL)
        run("SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt")
        run("CALL build_max_ids_of_followers(?, ?)", 7, 5000)
        run("SELECT * FROM max_ids_of_followers ORDER BY max_id DESC LIMIT 5")
        run("CALL fetch_timeline_ids(?)", 4)
        run(TAIL)
        run("CALL fetch_timeline_ids(999)")
        if warnings:
            run("SHOW WARNINGS")
        run(TAIL)
        run("CALL fetch_timeline_ids(1, 2, 3)")
        if callproc:
            self.call("fetch_timeline_ids", 7)
            run(TAIL)
            self.call("fetch_timeline_ids2", 7, 6000)
            run(TAIL)
        run(f"CALL fetch_timeline_ids(7); {TAIL}; SELECT 1; SELECT nothing FROM nowhere; SELECT 2")
        self.autocommit(False)
        run("INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')")
        run("CALL fetch_timeline_ids(7)")
        run(TAIL)
        connection.rollback()
        run("INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')")
        connection.commit()
        self.autocommit(True)
        run("CALL fetch_timeline_ids(7)")
        run(TAIL)
        run("SELECT id, word, amount FROM note ORDER BY id")
        run(DIGITS)
        run("SELECT REPEAT('x', 1000000) AS long_one")

    def autocommit(self, on):
        setting = self.connection.autocommit
        if callable(setting):
            setting(on)
        else:
            self.connection.autocommit = on
        self.run("SELECT @@autocommit")
