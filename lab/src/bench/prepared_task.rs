//! A task prepared for every query form, with the procedure's answer.

use super::client::{BenchClient, BenchClientError};
use crate::query_path::{FOLLOW_UP_SELECT, PageTask, QueryForm, bodies_select, query_packet};
use headwater_wire::cursor::{MalformedPacket, PacketCursor};

/// A task's statements as packets, and its expected answer.
#[derive(Debug, Default)]
pub struct PreparedTask {
    /// The requested page.
    pub task: PageTask,
    expected: Vec<u8>,
    expected_newest: Vec<u8>,
    join: Vec<u8>,
    select: Vec<u8>,
    exists: Vec<u8>,
    list: Vec<u8>,
    lateral: Vec<u8>,
    mailbox: Vec<u8>,
    bodies: Vec<u8>,
    call: Vec<u8>,
    newest: Vec<u8>,
    follow_up: Vec<u8>,
    at_once: Vec<u8>,
    statement: Vec<u8>,
}

/// A message as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMessageText {
    /// `message.id`.
    pub id: u64,
    /// `message.body`, as text.
    pub body: String,
}

impl PreparedTask {
    /// Calls the procedure on a direct connection, and prepares every statement of the task.
    ///
    /// # Errors
    /// Fails if the procedure does not answer.
    pub fn new(task: PageTask, direct: &mut BenchClient) -> Result<PreparedTask, BenchClientError> {
        let mut prepared = PreparedTask {
            task,
            join: query_packet(&task.join()),
            select: query_packet(&task.select()),
            exists: query_packet(&task.exists()),
            lateral: query_packet(&task.lateral()),
            mailbox: query_packet(&task.mailbox()),
            call: query_packet(&task.call()),
            newest: query_packet(&task.newest().call()),
            follow_up: query_packet(FOLLOW_UP_SELECT),
            at_once: query_packet(&task.call_and_follow_up()),
            ..PreparedTask::default()
        };
        prepared.load_expected(QueryForm::CallAndTail, direct)?;
        let mut rows = Vec::new();
        direct.query(&query_packet(&task.follows_select()), &mut rows)?;
        prepared.list = query_packet(&task.list(&parse_numbers(&rows)?));
        Ok(prepared)
    }

    /// Runs a given statement for this reader on a direct connection, and takes its answer as the expected one.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub fn for_statement(
        reader: u64,
        statement: &str,
        direct: &mut BenchClient,
    ) -> Result<PreparedTask, BenchClientError> {
        let mut prepared = PreparedTask {
            task: PageTask {
                reader,
                bound: None,
            },
            statement: query_packet(statement),
            ..PreparedTask::default()
        };
        prepared.load_expected(QueryForm::Own, direct)?;
        Ok(prepared)
    }

    /// Calls the procedure on a direct connection for a form's expected answer.
    ///
    /// # Errors
    /// Fails if it does not answer.
    pub fn load_expected(
        &mut self,
        form: QueryForm,
        direct: &mut BenchClient,
    ) -> Result<(), BenchClientError> {
        let mut rows = Vec::new();
        self.query(form.expected_form(), direct, &mut rows)?;
        self.set_expected(form, rows)
    }

    /// A form's expected answer: the concatenated payloads of the rows.
    #[must_use]
    pub fn expected(&self, form: QueryForm) -> &[u8] {
        match form {
            QueryForm::Newest => &self.expected_newest,
            _ => &self.expected,
        }
    }

    /// The statement of a form as a packet, and its follow-up, if any.
    #[must_use]
    pub fn statements(&self, form: QueryForm) -> (&[u8], Option<&[u8]>) {
        match form {
            QueryForm::Join => (&self.join, None),
            QueryForm::Select => (&self.select, None),
            QueryForm::Exists => (&self.exists, None),
            QueryForm::List => (&self.list, None),
            QueryForm::Lateral => (&self.lateral, None),
            QueryForm::Mailbox => (&self.mailbox, None),
            QueryForm::Bodies => (&self.bodies, None),
            QueryForm::Call => (&self.call, None),
            QueryForm::CallAndTail => (&self.call, Some(&self.follow_up)),
            QueryForm::AtOnce => (&self.at_once, None),
            QueryForm::Newest => (&self.newest, Some(&self.follow_up)),
            QueryForm::Own => (&self.statement, None),
        }
    }

    /// Queries in one form. After [`QueryForm::Call`] there are no rows.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub fn query(
        &self,
        form: QueryForm,
        client: &mut BenchClient,
        rows: &mut Vec<u8>,
    ) -> Result<(), BenchClientError> {
        let (first, second) = self.statements(form);
        client.query(first, rows)?;
        second.map_or(Ok(()), |second| client.query(second, rows))
    }

    /// Reads the result table of this connection's last CALL.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub fn query_follow_up(
        &self,
        client: &mut BenchClient,
        rows: &mut Vec<u8>,
    ) -> Result<(), BenchClientError> {
        client.query(&self.follow_up, rows)
    }

    /// Stores rows as a form's expected answer.
    ///
    /// # Errors
    /// Fails if they are not rows of a page.
    pub fn set_expected(&mut self, form: QueryForm, rows: Vec<u8>) -> Result<(), BenchClientError> {
        if form == QueryForm::Own {
            self.expected = rows;
            return Ok(());
        }
        let ids: Vec<u64> = parse_messages(&rows)?
            .iter()
            .map(|message| message.id)
            .collect();
        if form == QueryForm::Newest {
            self.expected_newest = rows;
            return Ok(());
        }
        self.bodies = query_packet(&bodies_select(&ids));
        self.expected = rows;
        Ok(())
    }
}

/// Parses rows of one integer.
fn parse_numbers(rows: &[u8]) -> Result<Vec<u64>, MalformedPacket> {
    let mut cursor = PacketCursor::new(rows);
    let mut numbers = Vec::new();
    while !cursor.is_empty() {
        let at = cursor.position();
        let number = std::str::from_utf8(cursor.lenenc_bytes()?).ok();
        let number = number.and_then(|number| number.parse().ok());
        numbers.push(number.ok_or(MalformedPacket::Unexpected { at, value: 0 })?);
    }
    Ok(numbers)
}

/// Parses the rows of a page: id, author, body.
///
/// # Errors
/// Fails if the rows have another form.
pub fn parse_messages(rows: &[u8]) -> Result<Vec<PageMessageText>, MalformedPacket> {
    let mut cursor = PacketCursor::new(rows);
    let mut messages = Vec::new();
    while !cursor.is_empty() {
        let at = cursor.position();
        let id = std::str::from_utf8(cursor.lenenc_bytes()?)
            .ok()
            .and_then(|id| id.parse().ok());
        cursor.lenenc_bytes()?;
        let body = String::from_utf8_lossy(cursor.lenenc_bytes()?).into_owned();
        messages.push(PageMessageText {
            id: id.ok_or(MalformedPacket::Unexpected { at, value: 0 })?,
            body,
        });
    }
    Ok(messages)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_apart_and_strange_ones_refused() {
        let message = |id, body: &str| PageMessageText {
            id,
            body: body.to_owned(),
        };
        let rows = b"\x0212\x011\x02hi\x019\x013\x00";
        assert_eq!(
            parse_messages(rows).unwrap(),
            [message(12, "hi"), message(9, "")]
        );
        assert_eq!(parse_messages(b"").unwrap(), []);
        parse_messages(b"\x01x\x011\x00").unwrap_err();
        parse_messages(b"\x0212\x011").unwrap_err();
    }
}
