//! Samples an execution that is relayed unchanged: where the client caches column definitions, only the server may send it others, and it
//! sends each only once. So nothing of the reply to the client's own statement is cached.

use std::sync::Arc;
use std::time::Instant;

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::{ColumnFingerprint, PlanSettings, PlanStatusFlags};
use headwater_feed::template::RetirementReason;
use headwater_wire::response::OkPacket;

/// An execution that is sampled.
#[derive(Debug)]
pub struct MetadataSample {
    pub(super) template: Arc<Template>,
    pub(super) bucket: AuthorCountBucket,
    pub(super) settings: PlanSettings,
    pub(super) begun: Instant,
    metadata: Option<(ColumnFingerprint, PlanStatusFlags)>,
    warns: bool,
}

impl MetadataSample {
    pub(super) fn new(
        template: Arc<Template>,
        bucket: AuthorCountBucket,
        settings: PlanSettings,
        begun: Instant,
    ) -> MetadataSample {
        MetadataSample {
            template,
            bucket,
            settings,
            begun,
            metadata: None,
            warns: false,
        }
    }

    /// The execution succeeded; its client has these columns, and its reply ended with these status flags.
    pub(crate) fn receive(
        &mut self,
        ok: &OkPacket,
        columns: Option<ColumnFingerprint>,
        status_after_columns: u16,
    ) {
        let ends = PlanStatusFlags {
            after_columns: status_after_columns,
            at_end: ok.status,
        };
        self.metadata = columns.map(|columns| (columns, ends));
        self.warns = ok.warnings > 0;
    }

    /// Records the sample in the template.
    #[allow(clippy::cast_precision_loss, reason = "a mean of times")]
    pub fn record(self, now: Instant) {
        if self.warns {
            return self.template.retire(RetirementReason::Warns);
        }
        let took = now.saturating_duration_since(self.begun).as_micros() as f64;
        if let Some((columns, ends)) = self.metadata {
            let of = (self.bucket, self.settings);
            self.template.record_sample(of, None, took, columns, ends);
        }
    }
}
