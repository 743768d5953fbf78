//! One task ready to be asked in every form, with the answer that the procedure gives.

use super::client::{Client, ClientError};
use super::way::{Form, TAIL, Task, bodies, packet};
use crate::wire::cursor::{Cursor, Malformed};

/// A task's statements as packets, and its right answer.
#[derive(Debug, Default)]
pub struct Work {
    /// What is asked for.
    pub task: Task,
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
    tail: Vec<u8>,
    at_once: Vec<u8>,
    own: Vec<u8>,
}

/// A message as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `message.id`.
    pub id: u64,
    /// `message.body`, as text.
    pub body: String,
}

impl Work {
    /// Asks the procedure, on a direct connection, and writes every statement of the task.
    ///
    /// # Errors
    /// When the procedure gives no answer.
    pub fn new(task: Task, direct: &mut Client) -> Result<Work, ClientError> {
        let mut work = Work {
            task,
            join: packet(&task.join()),
            select: packet(&task.select()),
            exists: packet(&task.exists()),
            lateral: packet(&task.lateral()),
            mailbox: packet(&task.mailbox()),
            call: packet(&task.call()),
            newest: packet(&task.newest().call()),
            tail: packet(TAIL),
            at_once: packet(&task.at_once()),
            ..Work::default()
        };
        work.learn(Form::CallAndTail, direct)?;
        let mut rows = Vec::new();
        direct.ask(&packet(&task.follows()), &mut rows)?;
        work.list = packet(&task.list(&numbers(&rows)?));
        Ok(work)
    }

    /// Asks a statement of its own for this reader, on a direct connection.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn own(reader: u64, statement: &str, direct: &mut Client) -> Result<Work, ClientError> {
        let mut work = Work {
            task: Task {
                reader,
                bound: None,
            },
            own: packet(statement),
            ..Work::default()
        };
        work.learn(Form::Own, direct)?;
        Ok(work)
    }

    /// Asks the procedure, on a direct connection, for a form's right answer.
    ///
    /// # Errors
    /// When it gives none.
    pub fn learn(&mut self, form: Form, direct: &mut Client) -> Result<(), ClientError> {
        let mut rows = Vec::new();
        self.ask(form.proof(), direct, &mut rows)?;
        self.expect(form, rows)
    }

    /// A form's right answer: the payloads of the rows, one behind the other.
    #[must_use]
    pub fn expected(&self, form: Form) -> &[u8] {
        match form {
            Form::Newest => &self.expected_newest,
            _ => &self.expected,
        }
    }

    /// The statement of a form, as a packet, and the one behind it.
    #[must_use]
    pub fn statements(&self, form: Form) -> (&[u8], Option<&[u8]>) {
        match form {
            Form::Join => (&self.join, None),
            Form::Select => (&self.select, None),
            Form::Exists => (&self.exists, None),
            Form::List => (&self.list, None),
            Form::Lateral => (&self.lateral, None),
            Form::Mailbox => (&self.mailbox, None),
            Form::Bodies => (&self.bodies, None),
            Form::Call => (&self.call, None),
            Form::CallAndTail => (&self.call, Some(&self.tail)),
            Form::AtOnce => (&self.at_once, None),
            Form::Newest => (&self.newest, Some(&self.tail)),
            Form::Own => (&self.own, None),
        }
    }

    /// Asks in one form. After [`Form::Call`] there are no rows.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ask(
        &self,
        form: Form,
        client: &mut Client,
        rows: &mut Vec<u8>,
    ) -> Result<(), ClientError> {
        let (first, second) = self.statements(form);
        client.ask(first, rows)?;
        second.map_or(Ok(()), |second| client.ask(second, rows))
    }

    /// Asks for what the last CALL of this connection left.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ask_tail(&self, client: &mut Client, rows: &mut Vec<u8>) -> Result<(), ClientError> {
        client.ask(&self.tail, rows)
    }

    /// Takes rows as a form's right answer.
    ///
    /// # Errors
    /// When they are no rows of a page.
    pub fn expect(&mut self, form: Form, rows: Vec<u8>) -> Result<(), ClientError> {
        if form == Form::Own {
            self.expected = rows;
            return Ok(());
        }
        let ids: Vec<u64> = messages(&rows)?.iter().map(|message| message.id).collect();
        if form == Form::Newest {
            self.expected_newest = rows;
            return Ok(());
        }
        self.bodies = packet(&bodies(&ids));
        self.expected = rows;
        Ok(())
    }
}

/// Takes rows of one number apart.
fn numbers(rows: &[u8]) -> Result<Vec<u64>, Malformed> {
    let mut cursor = Cursor::new(rows);
    let mut numbers = Vec::new();
    while !cursor.is_empty() {
        let at = cursor.position();
        let number = std::str::from_utf8(cursor.lenenc_bytes()?).ok();
        let number = number.and_then(|number| number.parse().ok());
        numbers.push(number.ok_or(Malformed::Unexpected { at, value: 0 })?);
    }
    Ok(numbers)
}

/// Takes the rows of a page apart: id, author, body.
///
/// # Errors
/// When they are something else.
pub fn messages(rows: &[u8]) -> Result<Vec<Message>, Malformed> {
    let mut cursor = Cursor::new(rows);
    let mut messages = Vec::new();
    while !cursor.is_empty() {
        let at = cursor.position();
        let id = std::str::from_utf8(cursor.lenenc_bytes()?)
            .ok()
            .and_then(|id| id.parse().ok());
        cursor.lenenc_bytes()?;
        let body = String::from_utf8_lossy(cursor.lenenc_bytes()?).into_owned();
        messages.push(Message {
            id: id.ok_or(Malformed::Unexpected { at, value: 0 })?,
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
        let message = |id, body: &str| Message {
            id,
            body: body.to_owned(),
        };
        let rows = b"\x0212\x011\x02hi\x019\x013\x00";
        assert_eq!(messages(rows).unwrap(), [message(12, "hi"), message(9, "")]);
        assert_eq!(messages(b"").unwrap(), []);
        messages(b"\x01x\x011\x00").unwrap_err();
        messages(b"\x0212\x011").unwrap_err();
    }
}
