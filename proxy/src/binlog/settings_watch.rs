//! Checks regularly that the server's settings still make its log complete: most can be changed at run time without a trace in the log. The
//! log also does not show that it was reset (RESET MASTER) and has reached the same length again: the server counts such statements.

use std::sync::Arc;
use std::time::Duration;

use super::Binlog;
use super::control_connection::{ControlConnection, LATEST};
use super::error::BinlogError;
use super::server_facts::{self, ServerFacts};
use crate::account::ConnectionPurpose;
use headwater_log::replication_state::StreamGeneration;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(binlog: Arc<Binlog>) {
    let mut control = ControlConnection::new(ConnectionPurpose::Settings);
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let (generation, server) = {
            let state = binlog.state();
            let generation = state.replication.generation();
            match &state.server {
                Some(server) if state.replication.is_current(generation) => {
                    (generation, Arc::clone(server))
                }
                _ => continue,
            }
        };
        let check = check_settings(&binlog, generation, &server, &mut control);
        match tokio::time::timeout(LATEST, check).await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(why))) => binlog.restart_stream(generation, why),
            Ok(Err(error)) => tracing::debug!("the server's settings are not looked at: {error}"),
            Err(_) => tracing::debug!("the server's settings are not looked at: it is too slow"),
        }
    }
}

/// Returns why the stream has to restart, if it has to.
async fn check_settings(
    binlog: &Binlog,
    generation: StreamGeneration,
    server: &ServerFacts,
    control: &mut ControlConnection,
) -> Result<Option<BinlogError>, BinlogError> {
    let mut conn = control.take(binlog, generation, server).await?;
    let (now, obstacles) =
        server_facts::survey_server(&mut conn)
            .await
            .map_err(BinlogError::while_doing(
                "the server's settings cannot be read",
            ))?;
    control.put_back(generation, conn);
    let obstacle = obstacles.into_iter().next().map(BinlogError::from);
    let reset = || (now.resets != server.resets).then_some(BinlogError::LogReset);
    let cluster = || (now.cluster != server.cluster).then_some(BinlogError::ClusterChanged);
    Ok(obstacle.or_else(reset).or_else(cluster))
}
