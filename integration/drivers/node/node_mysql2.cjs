// mysql2: text and prepared statements, a protocol in JavaScript of its own.
const mysql = require("mysql2/promise");
const { TAIL, login, print, tell, script } = require("./tell.cjs");

const column = (field) =>
  field && [field.name, field.columnType, field.flags, field.characterSet, field.columnLength, field.decimals];
const columns = (fields) => fields && fields.map((field) => (Array.isArray(field) ? field.map(column) : column(field)));

async function main() {
  const options = { ...login, multipleStatements: true, supportBigNumbers: true, bigNumberStrings: true, dateStrings: true };
  const connection = await mysql.createConnection(options);
  const see = ([rows, fields]) => ({ rows, fields: columns(fields) });
  const query = (sql) => tell(sql, () => connection.query(sql), see);
  const execute = (sql, given) => tell(sql, () => connection.execute(sql, given), see);
  print(connection.connection.serverEncoding, connection.connection.config.charsetNumber);
  await script(query, execute);
  await tell("ping", () => connection.ping());
  await query("CALL fetch_timeline_ids(7)");
  await tell("rows as arrays", () => connection.query({ sql: TAIL, rowsAsArray: true }), see);
  // Several commands are queued before the first answer comes.
  const queued = ["CALL fetch_timeline_ids(7)", TAIL, "CALL fetch_timeline_ids2(7, 6000)", TAIL];
  await tell("queued", () => Promise.all(queued.map((sql) => connection.query(sql))), (all) => all.map(see));
  await tell("reset", () => connection.reset());
  await query(TAIL);
  await tell("change user", () => connection.changeUser(login));
  await query("CALL fetch_timeline_ids(7)");
  await query(TAIL);
  await connection.end();
  const pool = mysql.createPool({ ...options, connectionLimit: 2 });
  await tell("pool", () => pool.query("SELECT DATABASE()"), see);
  await pool.end();
  await tell("wrong password", () => mysql.createConnection({ ...options, password: "wrong" }));
}

main();
