//! The command-line client of each product.

use super::stage::on_each_stage;

/// Each client sends its own version's extras: MySQL's puts query attributes before every text.
#[test]
fn each_products_own_client_is_accelerated() {
    on_each_stage(|stage| {
        let lines = "CALL fetch_timeline_ids(1); \
             SELECT message.id, user_id, body FROM message INNER JOIN fetch_timeline_tt USING(id) \
             ORDER BY message.id DESC LIMIT 20; CALL fetch_timeline_ids2(1, 300); \
             SELECT COUNT(*) FROM fetch_timeline_tt";
        let [direct, proxied] =
            [(0, stage.server.addr()), (1, stage.proxy.addr())].map(|(side, addr)| {
                let mut client = stage.server.stock_client(addr);
                client.args(["-vvv", "--execute", lines, stage.databases[side].name()]);
                let output = client.output().unwrap();
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(
                    output.status.success(),
                    "{said}{}",
                    String::from_utf8_lossy(&output.stderr)
                );
                // The printed times differ.
                let timed = |line: &&str| !line.ends_with(" sec)");
                said.lines().filter(timed).collect::<Vec<_>>().join("\n")
            });
        assert!(direct.contains("message 4"), "{direct}");
        assert_eq!(direct, proxied);
        stage.owned(2);
    });
}
