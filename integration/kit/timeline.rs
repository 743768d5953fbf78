//! A timeline's tables and procedures with the classic interface, for any page size and any ids.

use super::wire_client::WireClient;

/// A timeline's variable parts. The names are the classic ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    pub(crate) n: u32,
    pub(crate) id_type: &'static str,
    pub(crate) user_type: &'static str,
    /// The text after the columns of the procedures' temporary tables.
    pub(crate) options: &'static str,
}

impl Timeline {
    /// The timeline of 2008.
    pub(crate) const CLASSIC: Timeline = Timeline {
        n: 20,
        id_type: "int unsigned",
        user_type: "int unsigned",
        options: "ENGINE=heap DEFAULT CHARSET=utf8",
    };

    /// The classic timeline with a body that gives no warnings on MySQL.
    pub(crate) const SILENT: Timeline = Timeline {
        options: "ENGINE=MEMORY",
        ..Timeline::CLASSIC
    };

    /// Makes the tables and procedures in the client's current database.
    #[track_caller]
    pub(crate) fn create(&self, client: &mut WireClient) {
        for statement in self.tables() {
            client.ok(&statement);
        }
        for procedure in self.procedures() {
            client.ok(&procedure);
        }
    }

    pub(crate) fn tables(&self) -> [String; 2] {
        let Timeline {
            id_type, user_type, ..
        } = self;
        [
            format!(
                "CREATE TABLE follower (user_id {user_type} NOT NULL, follower_id {user_type} NOT NULL, \
                 PRIMARY KEY (user_id, follower_id), KEY follower_id (follower_id)) ENGINE=InnoDB"
            ),
            format!(
                "CREATE TABLE message (id {id_type} NOT NULL, user_id {user_type} NOT NULL, \
                 body varchar(255) NOT NULL, PRIMARY KEY (id), KEY user_id_id (user_id, id)) ENGINE=InnoDB"
            ),
        ]
    }

    /// The helper, the procedure of the newest page, and the bounded one.
    pub(crate) fn procedures(&self) -> [String; 3] {
        let Timeline {
            n,
            id_type,
            user_type,
            options,
        } = self;
        let result = format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS fetch_timeline_tt \
             (id {id_type} NOT NULL PRIMARY KEY) {options}; DELETE FROM fetch_timeline_tt;"
        );
        let fill = |where_id: &str| {
            format!(
                "OPEN authors; REPEAT FETCH authors INTO author, head; IF NOT ended THEN \
                 INSERT INTO fetch_timeline_tt SELECT id FROM message \
                 WHERE user_id = author{where_id} ORDER BY id DESC LIMIT {n}; \
                 END IF; UNTIL ended END REPEAT; CLOSE authors;"
            )
        };
        let declare = |cursor: &str| {
            format!(
                "DECLARE author {user_type}; DECLARE head {id_type}; DECLARE ended int DEFAULT 0; \
                 DECLARE authors CURSOR FOR {cursor}; \
                 DECLARE CONTINUE HANDLER FOR NOT FOUND SET ended = 1;"
            )
        };
        [
            format!(
                "CREATE PROCEDURE build_max_ids_of_followers(IN reader {user_type}, IN bound {id_type}) BEGIN \
                 DECLARE author {user_type}; DECLARE ended int DEFAULT 0; \
                 DECLARE authors CURSOR FOR SELECT follower_id FROM follower WHERE user_id = reader; \
                 DECLARE CONTINUE HANDLER FOR NOT FOUND SET ended = 1; \
                 CREATE TEMPORARY TABLE IF NOT EXISTS max_ids_of_followers \
                 (user_id {user_type} NOT NULL, max_id {id_type} NOT NULL) {options}; \
                 DELETE FROM max_ids_of_followers; \
                 OPEN authors; REPEAT FETCH authors INTO author; IF NOT ended THEN \
                 INSERT INTO max_ids_of_followers SELECT author, max(id) AS head FROM message \
                 WHERE user_id = author AND id <= bound HAVING NOT ISNULL(head); \
                 END IF; UNTIL ended END REPEAT; CLOSE authors; END"
            ),
            format!(
                "CREATE PROCEDURE fetch_timeline_ids(IN reader {user_type}) BEGIN {} {result} {} END",
                declare(&format!(
                    "SELECT follower_id, (SELECT id FROM message WHERE user_id = follower.follower_id \
                     ORDER BY user_id DESC, id DESC LIMIT 1) AS newest \
                     FROM follower WHERE user_id = reader ORDER BY newest DESC LIMIT {n}"
                )),
                fill("")
            ),
            format!(
                "CREATE PROCEDURE fetch_timeline_ids2(IN reader {user_type}, IN bound {id_type}) BEGIN \
                 {} {result} CALL build_max_ids_of_followers(reader, bound); {} END",
                declare(&format!(
                    "SELECT user_id, max_id FROM max_ids_of_followers ORDER BY max_id DESC LIMIT {n}"
                )),
                fill(" AND id <= head")
            ),
        ]
    }

    /// True where MySQL warns whenever it parses the procedures.
    pub(crate) fn parse_warns(&self) -> bool {
        self.options.contains("utf8")
    }

    /// The definition as a section of the settings file.
    pub(crate) fn toml(&self) -> String {
        format!(
            "[[definition]]\nn = {}\nid_type = \"{}\"\nuser_type = \"{}\"\n",
            self.n, self.id_type, self.user_type
        )
    }
}

/// Inserts rows by several INSERTs, in the given order.
#[track_caller]
pub(crate) fn insert<T>(
    client: &mut WireClient,
    table: &str,
    rows: &[T],
    values: impl Fn(&T) -> String,
) {
    for rows in rows.chunks(2_000) {
        let values: Vec<String> = rows.iter().map(&values).collect();
        client.ok(&format!("INSERT INTO {table} VALUES {}", values.join(",")));
    }
}
