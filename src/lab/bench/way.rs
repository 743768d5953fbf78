//! The ways of asking for a timeline, and the statements that each takes.

use serde::Serialize;

use crate::wire::command::Command;
use crate::wire::frame;

/// Messages on a page of the classic timeline.
pub const PAGE: u32 = 20;

/// Who stands between the client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Nobody.
    Direct,
    /// Headwater as it is meant to run.
    Headwater,
    /// Headwater with `--relay-only`.
    Relay,
    /// Headwater as it is meant to run, without feeds.
    NoFeeds,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// One join of both tables.
    Join,
    /// The same by a list of authors that the server finds: `IN (SELECT ...)`.
    Select,
    /// The same by EXISTS.
    Exists,
    /// The same by a list of authors that the app has read before.
    List,
    /// The newest ids of every followed author by LATERAL, then the bodies of the page.
    Lateral,
    /// The push model: the reader's mailbox, joined with the messages.
    Mailbox,
    /// The page's messages by primary key, their ids known beforehand.
    Bodies,
    /// The CALL alone.
    Call,
    /// The CALL, and then the join with its result table.
    CallAndTail,
    /// The CALL and that join, in one command.
    AtOnce,
    /// The CALL and then the join for the reader's newest page, whichever page the task is.
    Newest,
    /// A statement that is no page of the classic timeline.
    Own,
}

impl Form {
    /// What the procedure is asked for to know this form's answer.
    #[must_use]
    pub const fn proof(self) -> Form {
        match self {
            Form::Newest | Form::Own => self,
            _ => Form::CallAndTail,
        }
    }
}

/// A form on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// Who stands between.
    pub route: Route,
    /// What is asked.
    pub form: Form,
}

/// One page of one reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Whose timeline.
    pub reader: u64,
    /// The greatest id on the page may be this one; `None` for the newest page.
    pub bound: Option<u64>,
}

impl Way {
    /// Every way of pulling, in the order in which they take turns.
    pub const ALL: [Way; 12] = [
        Way::new(Route::Direct, Form::Join),
        Way::new(Route::Direct, Form::Lateral),
        Way::new(Route::Direct, Form::Call),
        Way::new(Route::Headwater, Form::Call),
        Way::new(Route::Relay, Form::Call),
        Way::new(Route::Direct, Form::CallAndTail),
        Way::new(Route::Headwater, Form::CallAndTail),
        Way::new(Route::Headwater, Form::Newest),
        Way::new(Route::Direct, Form::AtOnce),
        Way::new(Route::Headwater, Form::AtOnce),
        Way::new(Route::Relay, Form::CallAndTail),
        Way::new(Route::Direct, Form::Bodies),
    ];

    /// The ways of a feed's SELECTs, besides those.
    pub const FEEDS: [Way; 7] = [
        Way::new(Route::Headwater, Form::Join),
        Way::new(Route::Direct, Form::Select),
        Way::new(Route::Headwater, Form::Select),
        Way::new(Route::Direct, Form::Exists),
        Way::new(Route::Headwater, Form::Exists),
        Way::new(Route::Direct, Form::List),
        Way::new(Route::Headwater, Form::List),
    ];

    /// A form on a route.
    #[must_use]
    pub const fn new(route: Route, form: Form) -> Way {
        Way { route, form }
    }

    /// The way whose rate this one's is divided by; `None` where that is asked for something else.
    #[must_use]
    pub const fn measure(self) -> Option<Way> {
        match self.form {
            Form::Call => Some(Way::new(Route::Direct, Form::Call)),
            Form::Newest => None,
            Form::Join if matches!(self.route, Route::Headwater) => {
                Some(Way::new(Route::Direct, Form::Join))
            }
            Form::Select | Form::Exists | Form::List | Form::AtOnce | Form::Own => {
                Some(Way::new(Route::Direct, self.form))
            }
            _ => Some(Way::new(Route::Direct, Form::CallAndTail)),
        }
    }

    /// Its name in tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match (self.route, self.form) {
            (Route::Headwater, Form::Join) => "Headwater, plain SQL join",
            (_, Form::Join) => "plain SQL join",
            (Route::Headwater, Form::Select) => "Headwater, IN (SELECT)",
            (_, Form::Select) => "IN (SELECT)",
            (Route::Headwater, Form::Exists) => "Headwater, EXISTS",
            (_, Form::Exists) => "EXISTS",
            (Route::Headwater, Form::List) => "Headwater, list of authors",
            (_, Form::List) => "list of authors",
            (_, Form::Lateral) => "LATERAL over all followed",
            (_, Form::Mailbox) => "push, from the mailbox",
            (_, Form::Bodies) => "floor: 20 bodies by primary key",
            (_, Form::Newest) => "the same readers' page 1",
            (Route::Direct, Form::Own) => "directly",
            (Route::NoFeeds, Form::Own) => "Headwater without feeds",
            (_, Form::Own) => "Headwater",
            (Route::Direct, Form::Call) => "procedure, CALL alone",
            (Route::Headwater, Form::Call) => "Headwater, CALL alone",
            (Route::Relay | Route::NoFeeds, Form::Call) => "Headwater relaying, CALL alone",
            (Route::Headwater, Form::AtOnce) => "Headwater, both in one command",
            (_, Form::AtOnce) => "procedure, both in one command",
            (Route::Direct, Form::CallAndTail) => "procedure, CALL + tail",
            (Route::Headwater, Form::CallAndTail) => "Headwater, CALL + tail",
            (Route::Relay | Route::NoFeeds, Form::CallAndTail) => "Headwater relaying, CALL + tail",
        }
    }
}

/// The SELECT behind a CALL: the page, from its result table.
pub const TAIL: &str = "SELECT message.id,user_id,body FROM message \
     INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";

impl Task {
    /// The same reader's newest page.
    #[must_use]
    pub const fn newest(&self) -> Task {
        Task {
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

    /// The CALL and the SELECT behind it, as one text.
    #[must_use]
    pub fn at_once(&self) -> String {
        format!("{};{TAIL}", self.call())
    }

    /// The page in one plain join.
    #[must_use]
    pub fn join(&self) -> String {
        let (reader, bound) = (self.reader, self.bounded("message.id"));
        format!(
            "SELECT message.id,message.user_id,body FROM message \
             INNER JOIN follower ON message.user_id=follower.follower_id \
             WHERE follower.user_id={reader}{bound} ORDER BY message.id DESC LIMIT {PAGE}"
        )
    }

    /// The page by a list of authors that the server finds.
    #[must_use]
    pub fn select(&self) -> String {
        let reader = self.reader;
        self.whose(&format!(
            "user_id IN (SELECT follower_id FROM follower WHERE follower.user_id={reader})"
        ))
    }

    /// The page of authors of whom each is looked for among those that are followed.
    #[must_use]
    pub fn exists(&self) -> String {
        let reader = self.reader;
        self.whose(&format!(
            "EXISTS (SELECT 1 FROM follower WHERE follower.follower_id=message.user_id AND follower.user_id={reader})"
        ))
    }

    /// The page of these authors. Asks for author 0, who is nobody, when there are none.
    #[must_use]
    pub fn list(&self, authors: &[u64]) -> String {
        let mut list = "0".to_owned();
        if !authors.is_empty() {
            list.clear();
            crate::sql::push_list(&mut list, authors);
        }
        self.whose(&format!("user_id IN ({list})"))
    }

    fn whose(&self, condition: &str) -> String {
        let bound = self.bounded("id");
        format!(
            "SELECT id,user_id,body FROM message WHERE {condition}{bound} ORDER BY id DESC LIMIT {PAGE}"
        )
    }

    /// Those whom the reader follows.
    #[must_use]
    pub fn follows(&self) -> String {
        format!(
            "SELECT follower_id FROM follower WHERE user_id={}",
            self.reader
        )
    }

    /// The newest page from a mailbox table.
    #[must_use]
    pub fn mailbox(&self) -> String {
        let (reader, bound) = (self.reader, self.bounded("mailbox.message_id"));
        format!(
            "SELECT message.id,message.user_id,message.body FROM message \
             INNER JOIN mailbox ON message.id=mailbox.message_id \
             WHERE mailbox.user_id={reader}{bound} ORDER BY mailbox.message_id DESC LIMIT {PAGE}"
        )
    }

    /// The page by LATERAL, on ids alone until the page is known: with bodies inside it is several times slower.
    #[must_use]
    pub fn lateral(&self) -> String {
        let (reader, bound) = (self.reader, self.bounded("id"));
        format!(
            "SELECT message.id,message.user_id,body FROM (SELECT newest.id FROM follower, LATERAL (\
             SELECT id FROM message WHERE user_id=follower.follower_id{bound} ORDER BY id DESC LIMIT {PAGE}\
             ) newest WHERE follower.user_id={reader} ORDER BY newest.id DESC LIMIT {PAGE}\
             ) page INNER JOIN message USING(id) ORDER BY message.id DESC"
        )
    }

    fn bounded(&self, column: &str) -> String {
        self.bound
            .map_or_else(String::new, |bound| format!(" AND {column}<={bound}"))
    }
}

/// The messages of these ids, newest first. Asks for id 0, which nobody has, when there are none.
#[must_use]
pub fn bodies(ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let ids = if ids.is_empty() {
        "0".to_owned()
    } else {
        ids.join(",")
    };
    format!("SELECT id,user_id,body FROM message WHERE id IN ({ids}) ORDER BY id DESC")
}

/// A statement as it goes over the wire.
#[must_use]
pub fn packet(text: &str) -> Vec<u8> {
    let mut payload = vec![Command::Query.byte()];
    payload.extend_from_slice(text.as_bytes());
    frame::opening(&payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_page_has_no_bound_and_deeper_ones_have_it_in_every_form() {
        let newest = Task {
            reader: 7,
            bound: None,
        };
        assert_eq!(newest.call(), "CALL fetch_timeline_ids(7)");
        assert!(!newest.join().contains("<="));
        let deep = Task {
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
        assert!(bodies(&[]).contains("IN (0)"));
        assert!(bodies(&[3, 2]).contains("IN (3,2)"));
    }
}
