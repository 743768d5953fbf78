import java.sql.*;
import java.util.*;

/** MariaDB Connector/J: text and prepared by the server, calls as CallableStatement. */
class Timeline {
    static final String TAIL = "SELECT message.id,user_id,body FROM message "
        + "INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
    static final String DIGITS = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' "
        + "FROM digit a, digit b, digit c, digit e ORDER BY n";
    static Connection connection;

    interface Work { void run() throws SQLException; }

    static void told(String title, Work work) {
        System.out.println("-- " + title);
        try {
            work.run();
        } catch (SQLException error) {
            // The number of the thread and the address are those of the way, not of the server.
            String text = error.getMessage().replaceAll("\\((conn=|host=127|port=)[0-9.]+\\) ?", "");
            System.out.println("error " + error.getErrorCode() + " " + error.getSQLState() + " " + text);
        }
    }

    static void show(Statement statement, boolean rows) throws SQLException {
        while (true) {
            if (rows) {
                show(statement.getResultSet());
            } else if (statement.getUpdateCount() == -1) {
                break;
            } else {
                System.out.println("updated " + statement.getUpdateCount());
            }
            for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning())
                System.out.println("warning " + warning.getErrorCode() + " " + warning.getMessage());
            rows = statement.getMoreResults();
        }
    }

    static void show(ResultSet result) throws SQLException {
        ResultSetMetaData meta = result.getMetaData();
        for (int i = 1; i <= meta.getColumnCount(); i++)
            System.out.println(meta.getColumnName(i) + " " + meta.getTableName(i) + " " + meta.getColumnTypeName(i)
                + " " + meta.getPrecision(i) + " " + meta.getScale(i) + " " + meta.isNullable(i)
                + " " + meta.isAutoIncrement(i) + " " + meta.isSigned(i) + " " + meta.getColumnClassName(i));
        List<String> rows = new ArrayList<>();
        while (result.next()) {
            StringBuilder row = new StringBuilder();
            for (int i = 1; i <= meta.getColumnCount(); i++) {
                Object cell = result.getObject(i);
                if (cell instanceof byte[] || cell instanceof Blob) cell = Arrays.toString(result.getBytes(i));
                row.append(cell).append(" | ");
            }
            rows.add(row.toString());
        }
        String text = String.join("\n", rows);
        System.out.println(text.length() > 20000 ? rows.size() + " rows " + text.hashCode() : text);
    }

    static void query(String sql) {
        told(sql, () -> {
            try (Statement statement = connection.createStatement()) {
                boolean rows = statement.execute(sql, Statement.RETURN_GENERATED_KEYS);
                show(statement, rows);
            }
        });
    }

    static void execute(String sql, Object... given) {
        told(sql, () -> {
            boolean call = sql.contains("CALL");
            try (PreparedStatement statement = call ? connection.prepareCall(sql)
                    : connection.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 0; i < given.length; i++) statement.setObject(i + 1, given[i]);
                boolean rows = statement.execute();
                if (sql.startsWith("INSERT")) show(statement.getGeneratedKeys());
                show(statement, rows);
            }
        });
    }

    public static void main(String[] given) throws SQLException {
        String tls = given[5].equals("1") ? "&useSsl=true&serverSslCert=" + given[6] : "";
        String url = "jdbc:mariadb://" + given[0] + ":" + given[1] + "/" + given[4] + "?allowMultiQueries=true"
            + "&allowPublicKeyRetrieval=true" + tls;
        for (boolean byServer : new boolean[] {false, true}) {
            connection = DriverManager.getConnection(url + "&useServerPrepStmts=" + byServer, given[2], given[3]);
            DatabaseMetaData meta = connection.getMetaData();
            System.out.println(byServer + " " + meta.getDatabaseProductName() + " " + meta.getDatabaseProductVersion());
            query("TRUNCATE note");
            query("DELETE FROM message WHERE id > 10000");
            script();
            show(meta.getColumns(given[4], null, "message", null));
            System.out.println("valid " + connection.isValid(5));
            connection.close();
        }
        told("wrong password", () -> DriverManager.getConnection(url, given[2], "wrong"));
    }

    static void queries(String... texts) {
        for (String sql : texts) query(sql);
    }

    static void script() throws SQLException {
        queries("SELECT VERSION(), DATABASE(), CURRENT_USER()", "SHOW STATUS LIKE 'Ssl_version'",
            "SELECT * FROM sample ORDER BY id", "SELECT nothing FROM nowhere", "THIS IS NO SQL");
        execute("SELECT * FROM sample WHERE id < ? ORDER BY id", 4);
        execute("INSERT INTO note (word, amount) VALUES (?, ?)", "één 東京", null);
        queries("INSERT INTO note (id) VALUES (1)", "SELECT CAST('12x' AS SIGNED)");
        execute("SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id", "Zoë", 0, null);
        for (String call : List.of("CALL fetch_timeline_ids(7)", "call `fetch_timeline_ids2`( 7 , 6000 )",
                "CALL fetch_timeline_ids(999)", "CALL fetch_timeline_ids(1, 2, 3)"))
            queries(call, TAIL, "SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt");
        execute("{CALL fetch_timeline_ids(?)}", 4);
        execute(TAIL);
        execute("{CALL fetch_timeline_ids2(?, ?)}", 7, 6000);
        queries(TAIL, "CALL fetch_timeline_ids(7)");
        execute(TAIL);
        query("CALL fetch_timeline_ids(7); " + TAIL + "; SELECT 1");
        connection.setAutoCommit(false);
        queries("INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')", "CALL fetch_timeline_ids(7)", TAIL);
        connection.rollback();
        connection.setAutoCommit(true);
        queries("INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')", "CALL fetch_timeline_ids(7)", TAIL,
            "SELECT id, word, amount FROM note ORDER BY id", DIGITS);
        execute("SELECT REPEAT('x', ?) AS long_one", 1000000);
    }
}
