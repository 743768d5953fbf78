//! Has the server look over a page of kept rows, for the share of them that `shadow.rate` says: it answers the same statement in the same
//! session, and the whole replies are compared.
//!
//! The two are of one moment where the page, made once more behind the server's reply, is still the same. Whoever is compared waits for
//! the server, and is told a page that was found to be the server's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_rows::template::Frame;

use super::difference::{Difference, difference};
use super::kept::Paged;
use super::narrowing::{PageWant, Reply};
use super::ownership::OwnTail;
use super::state::{Ended, Session};
use super::tail::Memory;
use super::who::log_in;
use crate::clock;
use crate::shadow::Went;
use crate::statement::Tail;
use crate::wire::frame::HEADER_BYTES;
use crate::wire::reply::Outcome;

/// A difference counts if it comes so often one behind the other: a row may have been changed, and changed back.
const TRIES: usize = 3;

/// Whose page it is.
#[derive(Clone, Copy)]
enum Of<'a> {
    Feed(&'a PageWant),
    Tail(&'a OwnTail, &'a Memory),
}

/// A page, and what stands around its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) paged: Paged,
    pub(super) frame: Arc<Frame>,
}

impl Made {
    fn reply(&self) -> Vec<u8> {
        self.paged.clone().reply(&self.frame).0
    }
}

impl Session {
    /// A feed's page of kept rows, looked over if it is one of those; `length`: of the packet that waits, where it is the statement
    /// `alone`. `None`: there is none.
    pub(super) async fn feeds_page(
        &mut self,
        want: &PageWant,
        length: usize,
        alone: bool,
    ) -> Result<Option<Paged>, Ended> {
        let of = Of::Feed(want);
        let made = self.make(of).await;
        let takes = || {
            let (directly, _) = want.want.template.times()?;
            Some(Duration::from_secs_f64(directly / 1e6))
        };
        let payload = match alone && self.looks_over(made.as_ref(), takes) {
            true => {
                let packet = self.client_in.get(HEADER_BYTES..length);
                let commands = self.machine.commands().zip(packet);
                commands.and_then(|(commands, packet)| commands.as_it_is(packet))
            }
            false => None,
        };
        let made = self.look_over(of, made, payload.as_deref()).await?;
        Ok(made.map(|made| made.paged))
    }

    /// The same of a tail, whose packet waits and has this length.
    pub(super) async fn tails_page(
        &mut self,
        own: &OwnTail,
        memory: &Memory,
        (length, tail): (usize, &Tail),
    ) -> Result<Option<Made>, Ended> {
        let of = Of::Tail(own, memory);
        let made = self.make(of).await;
        let statement = match self.looks_over(made.as_ref(), || None) {
            true => self.statement_of(own, length, tail),
            false => None,
        };
        let payload = statement.as_ref().map(|(payload, _)| &payload[..]);
        self.look_over(of, made, payload).await
    }

    /// True if this page is one to compare, for whose statement the server takes so long.
    fn looks_over(&self, made: Option<&Made>, takes: impl FnOnce() -> Option<Duration>) -> bool {
        let shadow = self.shared.shadow.as_ref();
        made.is_some() && shadow.is_some_and(|shadow| shadow.chooses_page(takes))
    }

    async fn make(&mut self, of: Of<'_>) -> Option<Made> {
        match of {
            Of::Feed(want) => {
                let paged = self.kept_page(want).await?;
                let frame = Arc::clone(&want.frame);
                Some(Made { paged, frame })
            }
            Of::Tail(own, memory) => self.kept_tail(own, memory).await,
        }
    }

    /// Compares a page with what the server answers to this; without one, none is compared.
    async fn look_over(
        &mut self,
        of: Of<'_>,
        mut made: Option<Made>,
        payload: Option<&[u8]>,
    ) -> Result<Option<Made>, Ended> {
        let Some(payload) = payload else {
            return Ok(made);
        };
        let begun = clock::now();
        let mut last = None;
        for _ in 0..TRIES {
            let mut reply = self.run_in_place(payload).await?;
            let again = self.make(of).await;
            let same = made.is_some() && again == made;
            let told = again.as_ref().filter(|_| same).map(Made::reply);
            let difference = told.and_then(|told| self.differs(of, &told, &mut reply));
            made = again;
            let went = match difference {
                None => Went::Unsure,
                Some(None) => Went::Same,
                Some(Some(difference)) => {
                    last = Some(difference);
                    continue;
                }
            };
            self.looked_over(went, begun);
            return Ok(made);
        }
        if let Some(difference) = last {
            self.looked_over(Went::Different, begun);
            self.report_page(&difference);
        }
        Ok(None)
    }

    /// How a page differs from the server's reply. `None`: the server did not answer well, or at too great a length.
    fn differs(
        &mut self,
        of: Of<'_>,
        page: &[u8],
        reply: &mut Reply,
    ) -> Option<Option<Difference>> {
        let capabilities = self.machine.commands()?.capabilities;
        let (Some(bytes), Some(Outcome::Ok(_))) = (&mut reply.bytes, &reply.outcome) else {
            return None;
        };
        if let Of::Tail(own, _) = of {
            own.put_flags(bytes, capabilities);
        }
        Some(difference(page, bytes, capabilities))
    }

    /// True once a page was wrong: then none is told.
    pub(super) fn distrusts_rows(&self) -> bool {
        let shadow = self.shared.shadow.as_ref();
        shadow.is_some_and(|shadow| shadow.distrusts_rows())
    }

    fn looked_over(&self, went: Went, begun: Instant) {
        if let Some(shadow) = &self.shared.shadow {
            shadow.page_compared(went, clock::since(begun));
        }
    }

    /// A page was wrong: no rows are kept from now on.
    fn report_page(&self, difference: &Difference) {
        if let Some(rows) = self.shared.binlog.as_ref().and_then(|binlog| binlog.rows()) {
            rows.clear();
        }
        let span = self.span();
        log_in!(
            span,
            ERROR,
            "a page made of kept rows is not the server's: {difference}"
        );
        log_in!(
            span,
            ERROR,
            "rows are not kept from now on. Either they were changed where the server's log does not tell it (look for sql_log_bin = 0), \
             or Headwater has a fault (please report the statement and the tables). SIGHUP empties memory and has rows kept again"
        );
    }
}
