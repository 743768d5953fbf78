//! Reads the model's log with an independent parser: results about Headwater would mean nothing with a log that no server writes.

use mysql_common::binlog::BinlogFile;
use mysql_common::binlog::consts::BinlogVersion;
use mysql_common::binlog::events::{EventData, RowsEventData};
use mysql_common::binlog::row::BinlogRow;
use mysql_common::binlog::value::BinlogValue;
use mysql_common::value::Value as Wire;

use crate::log::ModelLog;
use crate::model::{ModelState, ModelTable, RowEdit, TableChange, WorldRow};
use crate::random::Random;
use crate::sql::CellValue;
use crate::writes;

const MAGIC: &[u8] = b"\xfebin";
const TRANSACTIONS: usize = 300;

/// Writes a log of random transactions, and compares each event's position, checksum and rows. The error reports the difference.
pub(crate) fn check() -> Result<(), String> {
    let (mut state, mut random, mut log) = (ModelState::default(), Random(1), ModelLog::new());
    let mut written = Vec::new();
    for number in 1..=TRANSACTIONS {
        let drawn = writes::drawn(&state, &mut random);
        let Some(edit) = state.apply(drawn) else {
            continue;
        };
        log.transaction(number, &[TableChange::Row(edit)], &state);
        written.push(edit);
    }
    log.transaction(
        TRANSACTIONS + 1,
        &[TableChange::Empty(ModelTable::Statuses)],
        &state,
    );
    let mut bytes = MAGIC.to_vec();
    while let Some(event) = log.at(1, bytes.len() as u64) {
        bytes.extend(event);
    }
    let file = BinlogFile::new(BinlogVersion::Version4, &bytes[..]);
    let mut file = file.map_err(|error| error.to_string())?;
    let (mut read, mut end) = (Vec::new(), MAGIC.len() as u64);
    while let Some(event) = file.next() {
        let event = event.map_err(|error| error.to_string())?;
        let header = event.header();
        end += u64::from(header.event_size());
        if u64::from(header.log_pos()) != end {
            return Err(format!("{header:?} ends at {end}"));
        }
        let algorithm = event.footer().get_checksum_alg();
        let algorithm = algorithm.ok().flatten().ok_or("no checksum")?;
        let is_description = header.event_type_raw() == 15;
        if !is_description && event.checksum() != Some(event.calc_checksum(algorithm).to_le_bytes())
        {
            return Err(format!("{header:?} has another checksum"));
        }
        if !matches!(header.event_type_raw(), 23..=25) {
            continue;
        }
        let data = event.read_data().map_err(|error| error.to_string())?;
        let Some(EventData::RowsEvent(rows)) = data else {
            return Err(format!("{header:?} has no rows"));
        };
        read.extend(changes(&rows, file.reader().get_tme(rows.table_id()))?);
    }
    if end != bytes.len() as u64 {
        return Err(format!("the log ends at {end}, not at {}", bytes.len()));
    }
    let expected: Vec<_> = written.iter().map(cells).collect();
    let mut both = expected.iter().zip(&read);
    match both.find(|(expected, read)| expected != read) {
        None if expected.len() == read.len() && read.len() > TRANSACTIONS / 2 => Ok(()),
        differ => Err(format!(
            "{} changes, {} read: {differ:?}",
            expected.len(),
            read.len()
        )),
    }
}

/// A table's name, and the cells of a row before and after a change.
type ChangedCells = (String, Option<Vec<String>>, Option<Vec<String>>);

fn cells(edit: &RowEdit) -> ChangedCells {
    let of = |row: Option<WorldRow>| {
        let cells = row.map(|row| edit.table.cells(row));
        cells.map(|cells| cells.iter().map(CellValue::to_string).collect())
    };
    (
        edit.table.name().to_owned(),
        of(edit.before),
        of(edit.after),
    )
}

fn changes(
    rows: &RowsEventData<'_>,
    table: Option<&mysql_common::binlog::events::TableMapEvent<'static>>,
) -> Result<Vec<ChangedCells>, String> {
    let table = table.ok_or("rows of a table that was not described")?;
    let mut all = Vec::new();
    for row in rows.rows(table) {
        let (before, after) = row.map_err(|error| error.to_string())?;
        let of = |row: Option<BinlogRow>| row.map(texts);
        all.push((table.table_name().into_owned(), of(before), of(after)));
    }
    Ok(all)
}

fn texts(row: BinlogRow) -> Vec<String> {
    let values = row.unwrap().into_iter();
    values
        .map(|value| match value {
            BinlogValue::Value(Wire::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            BinlogValue::Value(Wire::Int(number)) => number.to_string(),
            BinlogValue::Value(Wire::UInt(number)) => number.to_string(),
            other => format!("{other:?}"),
        })
        .collect()
}
