//! The query paths to a timeline, and the statements of each.

use serde::Serialize;

use headwater_wire::command::Command;
use headwater_wire::packet;

/// Messages on a page of the classic timeline.
pub const PAGE_ROWS: u32 = 20;

/// What is between the client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionRoute {
    /// A direct connection.
    Direct,
    /// Headwater as in production.
    Headwater,
    /// Headwater with `--relay-only`.
    Relay,
    /// Headwater as in production, without feeds.
    NoFeeds,
}

/// The form of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryForm {
    /// A join of both tables.
    Join,
    /// The same with a subquery for the authors: `IN (SELECT ...)`.
    Select,
    /// The same with EXISTS.
    Exists,
    /// The same with a list of authors that the app has read before.
    List,
    /// The newest ids of every followed author by LATERAL, then the bodies of the page.
    Lateral,
    /// The push model: the reader's mailbox joined with the messages.
    Mailbox,
    /// The page's messages by primary key; their ids are known beforehand.
    Bodies,
    /// The CALL alone.
    Call,
    /// The CALL, and then its follow-up SELECT.
    CallAndTail,
    /// The CALL and the follow-up SELECT in one command.
    AtOnce,
    /// The CALL and the follow-up SELECT for the reader's newest page, whichever page the task is.
    Newest,
    /// A statement that is no page of the classic timeline.
    Own,
}

impl QueryForm {
    /// The form in which the procedure gives this form's expected answer.
    #[must_use]
    pub const fn expected_form(self) -> QueryForm {
        match self {
            QueryForm::Newest | QueryForm::Own => self,
            _ => QueryForm::CallAndTail,
        }
    }
}

/// A form on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueryPath {
    /// The route.
    pub route: ConnectionRoute,
    /// The form.
    pub form: QueryForm,
}

/// One page of one reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageTask {
    /// The reader's id.
    pub reader: u64,
    /// The upper limit of the ids (inclusive); `None` for the newest page.
    pub bound: Option<u64>,
}

impl QueryPath {
    /// Every pull path, in the order in which they alternate.
    pub const ALL: [QueryPath; 12] = [
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Join),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Lateral),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Call),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::Call),
        QueryPath::new(ConnectionRoute::Relay, QueryForm::Call),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::CallAndTail),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::CallAndTail),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::Newest),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::AtOnce),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::AtOnce),
        QueryPath::new(ConnectionRoute::Relay, QueryForm::CallAndTail),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Bodies),
    ];

    /// The additional paths of feed SELECTs.
    pub const FEEDS: [QueryPath; 7] = [
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::Join),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Select),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::Select),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::Exists),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::Exists),
        QueryPath::new(ConnectionRoute::Direct, QueryForm::List),
        QueryPath::new(ConnectionRoute::Headwater, QueryForm::List),
    ];

    /// A form on a route.
    #[must_use]
    pub const fn new(route: ConnectionRoute, form: QueryForm) -> QueryPath {
        QueryPath { route, form }
    }

    /// The path whose rate divides this one's; `None` if that one requests something else.
    #[must_use]
    pub const fn baseline(self) -> Option<QueryPath> {
        match self.form {
            QueryForm::Call => Some(QueryPath::new(ConnectionRoute::Direct, QueryForm::Call)),
            QueryForm::Newest => None,
            QueryForm::Join if matches!(self.route, ConnectionRoute::Headwater) => {
                Some(QueryPath::new(ConnectionRoute::Direct, QueryForm::Join))
            }
            QueryForm::Select
            | QueryForm::Exists
            | QueryForm::List
            | QueryForm::AtOnce
            | QueryForm::Own => Some(QueryPath::new(ConnectionRoute::Direct, self.form)),
            _ => Some(QueryPath::new(
                ConnectionRoute::Direct,
                QueryForm::CallAndTail,
            )),
        }
    }

    /// The label in tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match (self.route, self.form) {
            (ConnectionRoute::Headwater, QueryForm::Join) => "Headwater, plain SQL join",
            (_, QueryForm::Join) => "plain SQL join",
            (ConnectionRoute::Headwater, QueryForm::Select) => "Headwater, IN (SELECT)",
            (_, QueryForm::Select) => "IN (SELECT)",
            (ConnectionRoute::Headwater, QueryForm::Exists) => "Headwater, EXISTS",
            (_, QueryForm::Exists) => "EXISTS",
            (ConnectionRoute::Headwater, QueryForm::List) => "Headwater, list of authors",
            (_, QueryForm::List) => "list of authors",
            (_, QueryForm::Lateral) => "LATERAL over all followed",
            (_, QueryForm::Mailbox) => "push, from the mailbox",
            (_, QueryForm::Bodies) => "floor: 20 bodies by primary key",
            (_, QueryForm::Newest) => "the same readers' page 1",
            (ConnectionRoute::Direct, QueryForm::Own) => "directly",
            (ConnectionRoute::NoFeeds, QueryForm::Own) => "Headwater without feeds",
            (_, QueryForm::Own) => "Headwater",
            (ConnectionRoute::Direct, QueryForm::Call) => "procedure, CALL alone",
            (ConnectionRoute::Headwater, QueryForm::Call) => "Headwater, CALL alone",
            (ConnectionRoute::Relay | ConnectionRoute::NoFeeds, QueryForm::Call) => {
                "Headwater relaying, CALL alone"
            }
            (ConnectionRoute::Headwater, QueryForm::AtOnce) => "Headwater, both in one command",
            (_, QueryForm::AtOnce) => "procedure, both in one command",
            (ConnectionRoute::Direct, QueryForm::CallAndTail) => "procedure, CALL + tail",
            (ConnectionRoute::Headwater, QueryForm::CallAndTail) => "Headwater, CALL + tail",
            (ConnectionRoute::Relay | ConnectionRoute::NoFeeds, QueryForm::CallAndTail) => {
                "Headwater relaying, CALL + tail"
            }
        }
    }
}

/// The follow-up SELECT after a CALL: the page, from the result table.
pub const FOLLOW_UP_SELECT: &str = "SELECT message.id,user_id,body FROM message \
     INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

impl PageTask {
    /// The same reader's newest page.
    #[must_use]
    pub const fn newest(&self) -> PageTask {
        PageTask {
            reader: self.reader,
            bound: None,
        }
    }

    /// The CALL for this page.
    #[must_use]
    pub fn call(&self) -> String {
        match self.bound {
            None => format!("CALL fetch_timeline_ids({})", self.reader),
            Some(bound) => format!("CALL fetch_timeline_ids2({},{bound})", self.reader),
        }
    }

    /// The CALL and its follow-up SELECT, as one text.
    #[must_use]
    pub fn call_and_follow_up(&self) -> String {
        format!("{};{FOLLOW_UP_SELECT}", self.call())
    }

    /// The page by one plain join.
    #[must_use]
    pub fn join(&self) -> String {
        let (reader, bound) = (self.reader, self.bound_condition("message.id"));
        format!(
            "SELECT message.id,message.user_id,body FROM message \
             INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader}{bound} ORDER BY message.id DESC LIMIT {PAGE_ROWS}"
        )
    }

    /// The page with a subquery for the authors.
    #[must_use]
    pub fn select(&self) -> String {
        let reader = self.reader;
        self.select_where(&format!(
            "user_id IN (SELECT follower_id FROM follower WHERE follower.user_id={reader})"
        ))
    }

    /// The page with EXISTS for the authors.
    #[must_use]
    pub fn exists(&self) -> String {
        let reader = self.reader;
        self.select_where(&format!(
            "EXISTS (SELECT 1 FROM follower WHERE follower.follower_id=message.user_id AND follower.user_id={reader})"
        ))
    }

    /// The page of these authors. With an empty list it uses author 0, who does not exist.
    #[must_use]
    pub fn list(&self, authors: &[u64]) -> String {
        let mut list = "0".to_owned();
        if !authors.is_empty() {
            list.clear();
            headwater_sql::push_list(&mut list, authors);
        }
        self.select_where(&format!("user_id IN ({list})"))
    }

    fn select_where(&self, condition: &str) -> String {
        let bound = self.bound_condition("id");
        format!(
            "SELECT id,user_id,body FROM message WHERE {condition}{bound} ORDER BY id DESC LIMIT {PAGE_ROWS}"
        )
    }

    /// The SELECT of the authors whom the reader follows.
    #[must_use]
    pub fn follows_select(&self) -> String {
        format!(
            "SELECT follower_id FROM follower WHERE user_id={}",
            self.reader
        )
    }

    /// The newest page from a mailbox table.
    #[must_use]
    pub fn mailbox(&self) -> String {
        let (reader, bound) = (self.reader, self.bound_condition("mailbox.message_id"));
        format!(
            "SELECT message.id,message.user_id,message.body FROM message \
             INNER JOIN mailbox ON message.id=mailbox.message_id \
             WHERE mailbox.user_id={reader}{bound} ORDER BY mailbox.message_id DESC LIMIT {PAGE_ROWS}"
        )
    }

    /// The page by LATERAL, on ids alone until the page is known: with bodies inside it is several times slower.
    #[must_use]
    pub fn lateral(&self) -> String {
        let (reader, bound) = (self.reader, self.bound_condition("id"));
        format!(
            "SELECT message.id,message.user_id,body FROM (SELECT newest.id FROM follower, LATERAL (\
             SELECT id FROM message WHERE user_id=follower.follower_id{bound} ORDER BY id DESC LIMIT {PAGE_ROWS}\
             ) newest WHERE follower.user_id={reader} ORDER BY newest.id DESC LIMIT {PAGE_ROWS}\
             ) page INNER JOIN message USING(id) ORDER BY message.id DESC"
        )
    }

    fn bound_condition(&self, column: &str) -> String {
        self.bound
            .map_or_else(String::new, |bound| format!(" AND {column}<={bound}"))
    }
}

/// The messages of these ids, newest first. With an empty list it uses id 0, which does not exist.
#[must_use]
pub fn bodies_select(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let ids = if ids.is_empty() {
        "0".to_owned()
    } else {
        ids.join(",")
    };
    format!("SELECT id,user_id,body FROM message WHERE id IN ({ids}) ORDER BY id DESC")
}

/// A statement as a COM_QUERY packet.
#[must_use]
pub fn query_packet(text: &str) -> Vec<u8> {
    let mut payload = vec![Command::Query.byte()];
    payload.extend_from_slice(text.as_bytes());
    packet::encode_first(&payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_page_has_no_bound_and_deeper_ones_have_it_in_every_form() {
        let newest = PageTask {
            reader: 7,
            bound: None,
        };
        assert_eq!(newest.call(), "CALL fetch_timeline_ids(7)");
        assert!(!newest.join().contains("<="));
        let deep = PageTask {
            reader: 7,
            bound: Some(99),
        };
        assert_eq!(deep.call(), "CALL fetch_timeline_ids2(7,99)");
        assert_eq!(deep.newest(), newest);
        assert!(
            deep.join()
                .contains("WHERE follower.user_id=7 AND message.id<=99 ORDER")
        );
        assert!(
            deep.lateral()
                .contains(" AND id<=99 ORDER BY id DESC LIMIT 20)")
        );
    }

    #[test]
    fn no_ids_are_still_a_statement() {
        assert!(bodies_select(&[]).contains("IN (0)"));
        assert!(bodies_select(&[3, 2]).contains("IN (3,2)"));
    }
}
