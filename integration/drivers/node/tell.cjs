// The script of all drivers, as far as the two drivers of Node look alike.
const { createHash } = require("node:crypto");

const TAIL =
  "SELECT message.id,user_id,body FROM message " +
  "INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20";
const DIGITS =
  "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' " +
  "FROM digit a, digit b, digit c, digit e ORDER BY n";

const [host, port, user, password, database, tls, ca] = process.argv.slice(2);
const login = { host, port: Number(port), user, password, database, charset: "utf8mb4" };
if (tls === "1") login.ssl = { ca: require("node:fs").readFileSync(ca, "utf8") };

const plain = (key, value) => (typeof value === "bigint" ? `${value}n` : value);

function print(...what) {
  const text = JSON.stringify(what, plain);
  const hash = () => createHash("sha256").update(text).digest("hex");
  console.log(text.length > 20000 ? `${text.length} letters, ${hash()}` : text);
}

// Prints what a promise comes to: `see` makes it printable.
async function tell(title, work, see = (result) => result) {
  try {
    print(title, see(await work()));
  } catch (error) {
    const { name, errno, code, sqlState, sqlMessage } = error;
    print(title, { name, errno, code, sqlState, sqlMessage });
  }
}

// `query` sends text, `execute` a prepared statement.
async function script(query, execute) {
  await query("SELECT VERSION(), DATABASE(), CURRENT_USER()");
  await query("SHOW STATUS LIKE 'Ssl_version'");
  await query("SELECT * FROM sample ORDER BY id");
  await execute("SELECT * FROM sample WHERE id < ? ORDER BY id", [4]);
  await query("SELECT nothing FROM nowhere");
  await query("THIS IS NO SQL");
  await query("INSERT INTO note (word, amount) VALUES ('één 東京', 1), (NULL, NULL)");
  await query("INSERT INTO note (id) VALUES (1)");
  await query("UPDATE note SET amount = 5 WHERE id < 3");
  await execute("INSERT INTO note (word, amount) VALUES (?, ?)", ["prepared", 9]);
  await execute("SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id", ["Zoë", 1, null]);
  await execute("SELECT nothing FROM nowhere WHERE id = ?", [1]);
  await query("SELECT CAST('12x' AS SIGNED)");
  await query("SHOW WARNINGS");
  for (const call of ["CALL fetch_timeline_ids(7)", "call `fetch_timeline_ids2`( 7 , 6000 ) /* page */;"]) {
    await query(call);
    await query(TAIL);
  }
  await query("SELECT COUNT(*), MIN(id), MAX(id) FROM fetch_timeline_tt");
  await query("CALL fetch_timeline_ids(999)");
  await query("SHOW WARNINGS");
  await query(TAIL);
  await query("CALL fetch_timeline_ids(1, 2, 3)");
  await execute("CALL fetch_timeline_ids(?)", [4]);
  await execute(TAIL, []);
  await execute("CALL fetch_timeline_ids2(?, ?)", [7, 6000]);
  await query(TAIL);
  await query("CALL fetch_timeline_ids(7)");
  await execute(TAIL, []);
  await query(`CALL fetch_timeline_ids(7); ${TAIL}; SELECT 1`);
  await query(`CALL fetch_timeline_ids(7); SELECT nothing FROM nowhere; ${TAIL}`);
  await query("BEGIN");
  await query("INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')");
  await query("CALL fetch_timeline_ids(7)");
  await query(TAIL);
  await query("ROLLBACK");
  await query("INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')");
  await query("CALL fetch_timeline_ids(7)");
  await query(TAIL);
  await query("SET autocommit = 0");
  await query("INSERT INTO note (word) VALUES ('lost')");
  await query("CALL fetch_timeline_ids(7)");
  await query(TAIL);
  await query("ROLLBACK");
  await query("SET autocommit = 1");
  await query("SELECT id, word, amount FROM note ORDER BY id");
  await query(DIGITS);
  await execute("SELECT REPEAT('x', ?) AS long_one", [1000000]);
}

module.exports = { TAIL, login, print, tell, script };
