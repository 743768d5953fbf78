//! Statements prepared from a text (`PREPARE name FROM ...`): calls, and feeds' SELECTs.

use std::collections::HashMap;
use std::sync::Arc;

use headwater_statement::StatementEffects;

use super::{PreparedCall, PreparedCallForm, PreparedFeed};
use crate::call_request::{CallValues, RequestedCall};

#[derive(Debug, Default)]
pub(super) struct NamedStatements {
    calls: HashMap<String, PreparedCall>,
    feeds: HashMap<String, (Arc<PreparedFeed>, StatementEffects)>,
    /// The total length of feed texts.
    bytes: usize,
}

/// `EXECUTE name USING ...` of a feed's SELECT.
#[derive(Clone, Debug)]
pub struct NamedExecution {
    /// The prepared SELECT.
    pub feed: Arc<PreparedFeed>,
    /// The variables that supply its parameters.
    pub variables: Vec<String>,
}

impl NamedStatements {
    pub(super) fn forget(&mut self, name: &str) {
        self.calls.remove(name);
        if let Some((feed, _)) = self.feeds.remove(name) {
            self.bytes -= feed.text().len();
        }
    }

    /// Names a call; at most `most` have names.
    pub(super) fn put_call(&mut self, name: String, call: PreparedCall, most: usize) {
        if self.calls.len() < most {
            self.calls.insert(name, call);
        }
    }

    /// Names a feed's SELECT; at most `most` have names, with a limit on total bytes.
    pub(super) fn put_feed(
        &mut self,
        name: String,
        feed: PreparedFeed,
        effects: StatementEffects,
        (most, most_bytes): (usize, usize),
    ) {
        let bytes = self.bytes.saturating_add(feed.text().len());
        if self.feeds.len() < most && bytes <= most_bytes {
            self.bytes = bytes;
            self.feeds.insert(name, (Arc::new(feed), effects));
        }
    }

    pub(super) fn call(
        &self,
        name: &str,
        variables: Vec<String>,
        changes: u64,
    ) -> Option<RequestedCall> {
        Some(match self.calls.get(name)?.clone().at(changes) {
            Some(PreparedCallForm::Whole(call)) if variables.is_empty() => {
                RequestedCall::Call(call)
            }
            Some(PreparedCallForm::Open(open)) if open.parameter_count() == variables.len() => {
                RequestedCall::Statement(open, CallValues::Expressions(variables))
            }
            Some(PreparedCallForm::Open(open)) => {
                RequestedCall::Statement(open, CallValues::Invalid)
            }
            Some(PreparedCallForm::Whole(_)) | None => RequestedCall::Unresolvable,
        })
    }

    pub(super) fn feed(&self, name: &str) -> Option<&(Arc<PreparedFeed>, StatementEffects)> {
        self.feeds.get(name)
    }
}
