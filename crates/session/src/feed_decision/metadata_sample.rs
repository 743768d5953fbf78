//! What is learned of an execution that goes on as it is: where the client keeps what it was told of columns, only the server may tell it
//! others, and what it has told once it does not tell again. So no answer to the client's own statement is kept from it.

use std::sync::Arc;
use std::time::Instant;

use headwater_feed::Template;
use headwater_feed::cost::AuthorCountBucket;
use headwater_feed::result_metadata::{ColumnFingerprint, PlanSettings, PlanStatusFlags};
use headwater_feed::template::RetirementReason;
use headwater_wire::response::OkPacket;

/// An execution that is learned from.
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
        crowd: AuthorCountBucket,
        under: PlanSettings,
        begun: Instant,
    ) -> MetadataSample {
        MetadataSample {
            template,
            bucket: crowd,
            settings: under,
            begun,
            metadata: None,
            warns: false,
        }
    }

    /// It has ended well; its client has these columns, and these status flags stood behind them.
    pub(crate) fn receive(
        &mut self,
        ok: &OkPacket,
        columns: Option<ColumnFingerprint>,
        behind: u16,
    ) {
        let ends = PlanStatusFlags {
            after_columns: behind,
            at_end: ok.status,
        };
        self.metadata = columns.map(|columns| (columns, ends));
        self.warns = ok.warnings > 0;
    }

    /// The template is told.
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
