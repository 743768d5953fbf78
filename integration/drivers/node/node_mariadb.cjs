// MariaDB's own driver for Node: it sends commands without waiting for the answers before them.
const mariadb = require("mariadb");
const { TAIL, login, print, tell, script } = require("./tell.cjs");

const column = (field) => [field.name(), field.type, field.flags, field.collation.name, field.columnLength, field.scale];

function see(rows) {
  if (!Array.isArray(rows)) return rows;
  const meta = Array.isArray(rows.meta) ? rows.meta.map(column) : undefined;
  return { rows: rows.map((row) => (Array.isArray(row) ? see(row) : row)), meta };
}

async function main() {
  const options = { ...login, multipleStatements: true, dateStrings: true, allowPublicKeyRetrieval: true, trace: false };
  delete options.charset;
  const connection = await mariadb.createConnection(options);
  const query = (sql) => tell(sql, () => connection.query(sql), see);
  const execute = (sql, given) => tell(sql, () => connection.execute(sql, given), see);
  print(connection.serverVersion(), connection.info.isMariaDB(), connection.info.collation.name);
  await script(query, execute);
  await tell("ping", () => connection.ping());
  const batch = [["a", 1], [null, 2], ["ž", null]];
  await tell("batch", () => connection.batch("INSERT INTO note (word, amount) VALUES (?, ?)", batch));
  await query("SELECT * FROM note ORDER BY id");
  const queued = ["CALL fetch_timeline_ids(7)", TAIL, "CALL fetch_timeline_ids2(7, 6000)", TAIL];
  await tell("queued", () => Promise.all(queued.map((sql) => connection.query(sql))), (all) => all.map(see));
  await tell("begin", () => connection.beginTransaction());
  await query("CALL fetch_timeline_ids(7)");
  await query(TAIL);
  await tell("rollback", () => connection.rollback());
  await tell("reset", () => connection.reset());
  await query(TAIL);
  await tell("change user", () => connection.changeUser({ user: login.user, password: login.password, database: login.database }));
  await query("CALL fetch_timeline_ids(7)");
  await query(TAIL);
  await connection.end();
  await tell("wrong password", () => mariadb.createConnection({ ...options, password: "wrong" }));
}

main();
