//! What is learned of an execution that goes on as it is: where the client keeps what it was told of columns, only the server may tell it
//! others, and what it has told once it does not tell again. So no answer to the client's own statement is kept from it.

use std::sync::Arc;
use std::time::Instant;

use headwater_feed::Template;
use headwater_feed::cost::Crowd;
use headwater_feed::template::Retired;
use headwater_feed::variants::{Columns, Ends, Under};
use headwater_wire::response::OkPacket;

/// An execution that is learned from.
#[derive(Debug)]
pub struct Lesson {
    pub(super) template: Arc<Template>,
    pub(super) crowd: Crowd,
    pub(super) under: Under,
    pub(super) begun: Instant,
    said: Option<(Columns, Ends)>,
    warns: bool,
}

impl Lesson {
    pub(super) fn new(
        template: Arc<Template>,
        crowd: Crowd,
        under: Under,
        begun: Instant,
    ) -> Lesson {
        Lesson {
            template,
            crowd,
            under,
            begun,
            said: None,
            warns: false,
        }
    }

    /// It has ended well; its client has these columns, and these status flags stood behind them.
    pub(crate) fn hear(&mut self, ok: &OkPacket, columns: Option<Columns>, behind: u16) {
        let ends = Ends {
            columns: behind,
            last: ok.status,
        };
        self.said = columns.map(|columns| (columns, ends));
        self.warns = ok.warnings > 0;
    }

    /// The template is told.
    #[allow(clippy::cast_precision_loss, reason = "a mean of times")]
    pub fn end(self, now: Instant) {
        if self.warns {
            return self.template.retire(Retired::Warns);
        }
        let took = now.saturating_duration_since(self.begun).as_micros() as f64;
        if let Some((columns, ends)) = self.said {
            let of = (self.crowd, self.under);
            self.template.learn(of, None, took, columns, ends);
        }
    }
}
