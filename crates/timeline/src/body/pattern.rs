//! The three known procedure bodies, in a small pattern language with one step per word.
//!
//! | step | matches |
//! |---|---|
//! | `WORD`, `1`, `(` `)` `,` `;` `=` `<=` | itself, keywords whatever the case |
//! | `?WORD` | itself, or nothing |
//! | `[` steps `]` | the steps, or nothing where the first does not match |
//! | `:follower` `:message` `:result` `:heads` | the table's name |
//! | `:build` | the name of the procedure that builds the heads |
//! | `follower.author` | the column, bare or qualified by its table's name |
//! | `!follower.author` | the column, qualified by its table's name |
//! | `+result.id` | the column's name where a table is created |
//! | `%id` `%user` | the type |
//! | `#n` | the definition's n |
//! | `$reader` `$bound` | the first and the second parameter |
//! | `$author` `$head` | a local variable of the author's and of the message id's type, the same one throughout |
//! | `$done` | a local variable of any integer type that starts as 0, the same one throughout |
//! | `^cursor`, `@alias` | a free name, the same one throughout |
//! | `&yes` | 1 or TRUE |
//! | `&locals` | any number of variable declarations |
//! | `&memory` | table options: the MEMORY (once HEAP) engine, character sets at will |

use crate::definition::TimelineDefinition;

/// One of the procedures of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimelineRoutine {
    /// Fills the result table with the newest page.
    Newest,
    /// Fills the result table with the page at or below a bound.
    Bounded,
    /// Fills the heads table for the bounded procedure.
    Heads,
}

impl TimelineRoutine {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Newest, Self::Bounded, Self::Heads];

    /// The procedure's name in a definition.
    pub fn name(self, definition: &TimelineDefinition) -> &str {
        match self {
            Self::Newest => &definition.procedures.newest,
            Self::Bounded => &definition.procedures.bounded,
            Self::Heads => &definition.procedures.heads,
        }
    }

    /// How many parameters it has: the reader, and for two of them the bound.
    pub(super) fn parameter_count(self) -> usize {
        match self {
            Self::Newest => 1,
            Self::Bounded | Self::Heads => 2,
        }
    }

    pub(super) fn steps(self) -> impl Iterator<Item = &'static str> {
        let (cursor, table, fill) = match self {
            Self::Newest => (
                "SELECT follower.author , ( SELECT message.id FROM :message WHERE message.author = !follower.author
                   ORDER BY [ message.author DESC , ] message.id DESC LIMIT 1 ) ?AS @alias
                 FROM :follower WHERE follower.reader = $reader ORDER BY @alias DESC LIMIT #n",
                RESULT,
                "FETCH ^cursor INTO $author , $head ; IF NOT $done THEN
                   INSERT INTO :result SELECT message.id FROM :message WHERE message.author = $author
                     ORDER BY message.id DESC LIMIT #n ;",
            ),
            Self::Bounded => (
                "SELECT heads.author , heads.head FROM :heads ORDER BY heads.head DESC LIMIT #n",
                RESULT_AND_HEADS,
                "FETCH ^cursor INTO $author , $head ; IF NOT $done THEN
                   INSERT INTO :result SELECT message.id FROM :message
                     WHERE message.author = $author AND message.id <= $head ORDER BY message.id DESC LIMIT #n ;",
            ),
            Self::Heads => (
                "SELECT follower.author FROM :follower WHERE follower.reader = $reader",
                HEADS,
                "FETCH ^cursor INTO $author ; IF NOT $done THEN
                   INSERT INTO :heads SELECT $author , MAX ( message.id ) ?AS @alias FROM :message
                     WHERE message.author = $author AND message.id <= $bound HAVING NOT ISNULL ( @alias ) ;",
            ),
        };
        [
            "BEGIN &locals DECLARE ^cursor CURSOR FOR",
            cursor,
            "; DECLARE CONTINUE HANDLER FOR NOT FOUND SET $done = &yes ;",
            table,
            "OPEN ^cursor ; REPEAT",
            fill,
            "END IF ; UNTIL $done END REPEAT ; CLOSE ^cursor ; END",
        ]
        .into_iter()
        .flat_map(str::split_ascii_whitespace)
    }
}

const RESULT: &str =
    "CREATE TEMPORARY TABLE IF NOT EXISTS :result ( +result.id %id NOT NULL PRIMARY KEY ) &memory ;
    DELETE FROM :result ;";

const RESULT_AND_HEADS: &str =
    "CREATE TEMPORARY TABLE IF NOT EXISTS :result ( +result.id %id NOT NULL PRIMARY KEY ) &memory ;
    DELETE FROM :result ; CALL :build ( $reader , $bound ) ;";

const HEADS: &str = "CREATE TEMPORARY TABLE IF NOT EXISTS :heads ( +heads.author %user NOT NULL , +heads.head %id NOT NULL ) &memory ;
    DELETE FROM :heads ;";
