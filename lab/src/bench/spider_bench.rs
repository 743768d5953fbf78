//! `--spider N`: the classic data set on N data nodes behind a private Spider node, measured as any other server.

use super::flags::BenchFlags;
use super::{BenchError, data};
use crate::demo::dataset::DatasetSize;
use crate::demo::load;
use crate::spider::SpiderCluster;
use indicatif::ProgressBar;

/// The database that the bench creates.
const DATABASE: &str = "spread";

/// Starts and fills the servers, and points the flags at them. They live as long as the returned value.
///
/// # Errors
/// Fails if a server cannot be started, or refuses a statement.
pub async fn start_spider(flags: &mut BenchFlags) -> Result<Option<SpiderCluster>, BenchError> {
    let Some(nodes) = flags.spider else {
        return Ok(None);
    };
    eprintln!("starting a Spider node and {nodes} data nodes");
    let (spider, address) = tokio::task::spawn_blocking(move || {
        let spider = SpiderCluster::start(usize::from(nodes), &[])?;
        spider.create_tables(DATABASE, false)?;
        let address = spider.node.addr().to_string();
        Ok::<_, BenchError>((spider, address))
    })
    .await??;
    flags.upstream = address;
    flags.user = Some("root".into());
    flags.password = String::new();
    flags.database = DATABASE.into();
    let at = |source| BenchError::Prepare {
        upstream: flags.upstream.clone(),
        source,
    };
    let mut conn = data::connect(flags, DATABASE).await.map_err(at)?;
    let bar = ProgressBar::new(0);
    let size = DatasetSize {
        messages: u64::from(flags.spread_messages),
        ..DatasetSize::CLASSIC
    };
    load::fill(&mut conn, size, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.rows);
    })
    .await?;
    bar.finish_and_clear();
    conn.disconnect().await.map_err(at)?;
    Ok(Some(spider))
}
