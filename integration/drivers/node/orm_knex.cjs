"use strict";
// Knex, on mysql2: the query builder of many apps without models.

const { knex } = require("knex");
const { host, port, database, show } = require("./orm.cjs");

const db = knex({ client: "mysql2", connection: { host, port, user: "root", password: "", database, timezone: "Z" }, pool: { min: 1, max: 1 } });

function rows(query) {
  return query.then((rows) => rows.map((row) => ({ ...row, createdAt: row.created_at, user: { name: row.name } })));
}

async function pages(what, posts) {
  const newest = () => posts().whereNull("posts.deleted_at").orderBy("posts.id", "desc").limit(20);
  const page = show(`${what} first`, await rows(newest()));
  if (page.length) show(`${what} cursor`, await rows(newest().where("posts.id", "<", page.at(-1).id)));
  show(`${what} offset`, await rows(newest().offset(20)));
}

async function byTime(what, posts) {
  const order = [{ column: "posts.created_at", order: "desc" }, { column: "posts.id", order: "desc" }];
  const newest = () => posts().whereNull("posts.deleted_at").orderBy(order).limit(20);
  const page = show(`${what} by time`, await rows(newest()));
  if (page.length) {
    const { created_at, id } = page.at(-1);
    const older = (query) => query.where("posts.created_at", "<", created_at).orWhere((tie) => tie.where("posts.created_at", created_at).andWhere("posts.id", "<", id));
    show(`${what} by time, cursor`, await rows(newest().where(older)));
    show(`${what} by time, pair`, await rows(newest().whereRaw("(posts.created_at, posts.id) < (?, ?)", [created_at, id])));
  }
}

async function feeds(db, reader) {
  const posts = () => db("posts").join("users", "users.id", "posts.user_id").select("posts.*", "users.name");
  const followed = () => db("follows").select("followed_id").where({ follower_id: reader });
  await pages(`${reader} subquery`, () => posts().whereIn("posts.user_id", followed()));
  await pages(`${reader} or mine`, () => posts().where((query) => query.whereIn("posts.user_id", followed()).orWhere("posts.user_id", reader)));
  const authors = await followed().pluck("followed_id");
  await pages(`${reader} list`, () => posts().whereIn("posts.user_id", authors));
  const join = () => posts().join("follows", "follows.followed_id", "posts.user_id").where("follows.follower_id", reader);
  await pages(`${reader} join`, join);
  await pages(`${reader} through the author`, () => posts().join("follows", "follows.followed_id", "users.id").where("follows.follower_id", reader));
  await pages(`${reader} exists`, () => posts().whereExists(db("follows").select(db.raw("1")).whereRaw("follows.followed_id = posts.user_id").where("follows.follower_id", reader)));
  await byTime(`${reader} join`, join);
  await byTime(`${reader} subquery`, () => posts().whereIn("posts.user_id", followed()));
}

async function main() {
  for (let reader = 1; reader <= 6; reader++) await feeds(db, reader);
  await db.transaction((transaction) => feeds(transaction, 7));
  await db.destroy();
}

main();
