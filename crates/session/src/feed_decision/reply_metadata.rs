//! The parts of a reply that depend on the plan: key flags of columns, and status flags.

use headwater_feed::result_metadata::{ColumnFingerprint, PlanStatusFlags};
use headwater_wire::capability::Capabilities;
use headwater_wire::reply::layout::{self, ReplyLayout, status_flags_at, write_status_flags};

/// The metadata of a complete, successful reply.
pub(super) struct ReplyMetadata {
    /// `None`: they are omitted, as the client has them.
    pub(super) columns: Option<ColumnFingerprint>,
    pub(super) ends: PlanStatusFlags,
}

pub(super) fn read_metadata(reply: &[u8], capabilities: Capabilities) -> Option<ReplyMetadata> {
    let layout = ReplyLayout::read(reply, capabilities)?;
    let columns = match &layout.definitions {
        Some(definitions) => {
            let each = definitions
                .iter()
                .filter_map(|range| reply.get(range.clone()));
            Some(ColumnFingerprint::read(each)?)
        }
        None => None,
    };
    let ends = PlanStatusFlags {
        after_columns: layout
            .columns_end_status
            .map_or(Some(0), |at| status_flags_at(reply, at))?,
        at_end: status_flags_at(reply, layout.end_status)?,
    };
    Some(ReplyMetadata { columns, ends })
}

/// Makes both as in a direct reply. False where that is impossible.
pub(super) fn restore_metadata(
    reply: &mut [u8],
    capabilities: Capabilities,
    columns: &ColumnFingerprint,
    ends: PlanStatusFlags,
) -> bool {
    let Some(layout) = ReplyLayout::read(reply, capabilities) else {
        return false;
    };
    if let Some(at) = layout.columns_end_status {
        write_status_flags(reply, at, PlanStatusFlags::FLAGS, ends.after_columns);
    }
    write_status_flags(
        reply,
        layout.end_status,
        PlanStatusFlags::FLAGS,
        ends.at_end,
    );
    let ranges = layout.definitions.unwrap_or_default();
    let mut definitions = Vec::with_capacity(ranges.len());
    let mut rest = reply;
    let mut passed = 0;
    for range in ranges {
        let Some((before, after)) = rest.split_at_mut_checked(range.end - passed) else {
            return false;
        };
        let Some(definition) = before.get_mut(range.start - passed..) else {
            return false;
        };
        definitions.push(definition);
        (rest, passed) = (after, range.end);
    }
    columns.restore_key_flags(&mut definitions);
    true
}

/// Omits column definitions that the client has.
pub(super) fn omit_columns(reply: Vec<u8>, capabilities: Capabilities) -> Vec<u8> {
    layout::without_definitions(&reply, capabilities).unwrap_or(reply)
}
