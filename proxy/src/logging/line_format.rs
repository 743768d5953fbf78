//! The format of log lines. Names, texts and errors from outside are escaped ([`shown`]), so that nobody can forge a line.

use std::fmt;
use std::io::{self, Write};

use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{self, FormatFields, Writer};

use headwater_sql::display_escape::is_hidden;
use headwater_sql::{escape_hidden, escape_hidden_in_json, escape_hidden_in_lines};

/// Fields of a text line: the message, `name=value` of the others, and a settings file's section in lines of its own.
#[must_use]
pub fn fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(field).delimited(" ")
}

fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = format!("{value:?}");
    match field.name() {
        "message" => write!(writer, "{}", escape_hidden(&value)),
        // Headwater wrote these lines, to be pasted; none comes from outside.
        "section" => write!(writer, "\n{}", escape_hidden_in_lines(&value)),
        name => write!(writer, "{name}={}", escape_hidden(&value)),
    }
}

/// A writer for lines of JSON.
#[derive(Clone, Debug)]
pub struct JsonLogWriter<W>(pub W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for JsonLogWriter<W> {
    type Writer = JsonLineWriter<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        JsonLineWriter(self.0.make_writer())
    }
}

/// One line of JSON, written at once.
#[derive(Debug)]
pub struct JsonLineWriter<W>(W);

impl<W: Write> Write for JsonLineWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        match line.contains(&b'\\')
            || text
                .chars()
                .any(|letter| is_hidden(letter) && letter != '\n')
        {
            true => self.0.write_all(escape_hidden_in_json(&text).as_bytes())?,
            false => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
