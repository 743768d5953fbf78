//! A definition's procedures as SQL: for a server that has none yet, and for tests with other names, types and n.

use super::definition::TimelineDefinition;
use headwater_sql::quoted;

impl TimelineDefinition {
    /// The `CREATE PROCEDURE` statements of the definition's three procedures, callees first.
    ///
    /// They do what the procedures of 2008 do, and [`super::body::compare`] accepts them. Each is one statement without a delimiter.
    /// `fixtures/sql/procedures.sql` holds the classic ones.
    pub fn procedures_sql(&self) -> [String; 3] {
        [self.heads_sql(), self.newest_sql(), self.bounded_sql()]
    }

    fn heads_sql(&self) -> String {
        let heads = quoted(&self.heads.table);
        let create = format!(
            "{} {} NOT NULL,\n    {} {} NOT NULL",
            quoted(&self.heads.author),
            self.user_type,
            quoted(&self.heads.head),
            self.id_type,
        );
        let authors = format!(
            "SELECT {author} FROM {follower} WHERE {reader} = p_reader",
            author = quoted(&self.follower.author),
            follower = quoted(&self.follower.table),
            reader = quoted(&self.follower.reader),
        );
        let fill = format!(
            "INSERT INTO {heads}\n        SELECT v_author, MAX({id}) AS newest FROM {message}\n        WHERE {author} = v_author AND {id} <= p_bound\n        HAVING NOT ISNULL(newest);",
            id = quoted(&self.message.id),
            message = quoted(&self.message.table),
            author = quoted(&self.message.author),
        );
        self.create_procedure_sql(&ProcedureParts {
            name: &self.procedures.heads,
            bounded: true,
            comment: "The newest message id of each author that p_reader follows, at or below p_bound.",
            head_variable: false,
            cursor: &authors,
            table: &heads,
            columns: &create,
            before_loop: "",
            fill: &fill,
        })
    }

    fn newest_sql(&self) -> String {
        let cursor = format!(
            "SELECT {author}, (\n      SELECT {id} FROM {message}\n      WHERE {message_author} = {follower}.{author}\n      ORDER BY {message_author} DESC, {id} DESC LIMIT 1\n    ) AS newest\n    FROM {follower} WHERE {reader} = p_reader\n    ORDER BY newest DESC LIMIT {n}",
            author = quoted(&self.follower.author),
            follower = quoted(&self.follower.table),
            reader = quoted(&self.follower.reader),
            id = quoted(&self.message.id),
            message = quoted(&self.message.table),
            message_author = quoted(&self.message.author),
            n = self.n,
        );
        self.create_procedure_sql(&ProcedureParts {
            name: &self.procedures.newest,
            bounded: false,
            comment: "The newest messages of the authors that p_reader follows and that wrote last.",
            head_variable: true,
            cursor: &cursor,
            table: &quoted(&self.result.table),
            columns: &self.result_columns_sql(),
            before_loop: "",
            fill: &self.insert_result_sql(""),
        })
    }

    fn bounded_sql(&self) -> String {
        let head = quoted(&self.heads.head);
        let cursor = format!(
            "SELECT {}, {head} FROM {}\n    ORDER BY {head} DESC LIMIT {}",
            quoted(&self.heads.author),
            quoted(&self.heads.table),
            self.n,
        );
        self.create_procedure_sql(&ProcedureParts {
            name: &self.procedures.bounded,
            bounded: true,
            comment: "The same at or below p_bound: one less than the last id of the page before.",
            head_variable: true,
            cursor: &cursor,
            table: &quoted(&self.result.table),
            columns: &self.result_columns_sql(),
            before_loop: &format!(
                "  CALL {}(p_reader, p_bound);\n",
                quoted(&self.procedures.heads)
            ),
            fill: &self.insert_result_sql(&format!(" AND {} <= v_head", quoted(&self.message.id))),
        })
    }

    fn result_columns_sql(&self) -> String {
        format!(
            "{} {} NOT NULL PRIMARY KEY",
            quoted(&self.result.id),
            self.id_type
        )
    }

    fn insert_result_sql(&self, bound: &str) -> String {
        format!(
            "INSERT INTO {result}\n        SELECT {id} FROM {message}\n        WHERE {author} = v_author{bound}\n        ORDER BY {id} DESC LIMIT {n};",
            result = quoted(&self.result.table),
            id = quoted(&self.message.id),
            message = quoted(&self.message.table),
            author = quoted(&self.message.author),
            n = self.n,
        )
    }

    fn create_procedure_sql(&self, parts: &ProcedureParts<'_>) -> String {
        let Self {
            user_type, id_type, ..
        } = self;
        let bound = if parts.bounded {
            format!(", IN p_bound {id_type}")
        } else {
            String::new()
        };
        let head = if parts.head_variable {
            format!("  DECLARE v_head {id_type};\n")
        } else {
            String::new()
        };
        let fetched = if parts.head_variable {
            "v_author, v_head"
        } else {
            "v_author"
        };
        let ProcedureParts {
            name,
            comment: about,
            cursor,
            table,
            columns,
            before_loop,
            fill,
            ..
        } = parts;
        format!(
            "CREATE PROCEDURE {name}(IN p_reader {user_type}{bound})
BEGIN
  -- {about}
  DECLARE v_author {user_type};
{head}  DECLARE v_end tinyint DEFAULT 0;
  DECLARE authors CURSOR FOR
    {cursor};
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;

  CREATE TEMPORARY TABLE IF NOT EXISTS {table} (
    {columns}
  ) ENGINE=MEMORY;
  DELETE FROM {table};
{before_loop}  OPEN authors;
  REPEAT
    FETCH authors INTO {fetched};
    IF NOT v_end THEN
      {fill}
    END IF;
  UNTIL v_end END REPEAT;
  CLOSE authors;
END",
            name = quoted(name),
        )
    }
}

/// The parts in which the procedures differ.
struct ProcedureParts<'a> {
    name: &'a str,
    bounded: bool,
    comment: &'a str,
    head_variable: bool,
    cursor: &'a str,
    table: &'a str,
    columns: &'a str,
    before_loop: &'a str,
    fill: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_procedures_are_those_of_the_fixture() {
        let header = "-- The classic timeline's procedures, as `Definition::classic().procedures_sql()` writes them.\nDELIMITER //\n\n";
        let statements = TimelineDefinition::classic()
            .procedures_sql()
            .map(|text| format!("{text} //\n\n"))
            .concat();
        let written = format!("{header}{statements}DELIMITER ;\n");
        assert_eq!(
            include_str!("../../../fixtures/sql/procedures.sql"),
            written
        );
    }
}
