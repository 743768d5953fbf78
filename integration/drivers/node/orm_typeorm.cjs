"use strict";
// TypeORM, on mysql2: its query builder with `limit`, and `take`, which asks for the ids first; repositories with relations.

const { DataSource, EntitySchema, In, LessThan } = require("typeorm");
const { host, port, database, show } = require("./orm.cjs");

const id = { type: "bigint", primary: true, generated: true };
const User = new EntitySchema({ name: "User", tableName: "users", columns: { id, name: { type: String, length: 50 } } });
const Follow = new EntitySchema({
  name: "Follow",
  tableName: "follows",
  columns: { id, followerId: { type: "bigint", name: "follower_id" }, followedId: { type: "bigint", name: "followed_id" } },
});
const Post = new EntitySchema({
  name: "Post",
  tableName: "posts",
  columns: {
    id,
    userId: { type: "bigint", name: "user_id" },
    body: { type: String, length: 200 },
    createdAt: { type: "datetime", precision: 6, name: "created_at" },
    deletedAt: { type: "datetime", precision: 6, name: "deleted_at", deleteDate: true, nullable: true },
  },
  relations: { user: { type: "many-to-one", target: "User", joinColumn: { name: "user_id" } } },
});

const source = new DataSource({ type: "mysql", host, port, username: "root", password: "", database, timezone: "Z", entities: [User, Follow, Post] });

/** Pages cut by `limit` and `offset`, and by `take` and `skip`. */
async function pages(what, posts) {
  const newest = () => posts().orderBy("post.id", "DESC");
  const page = show(`${what} first`, await newest().limit(20).getMany());
  if (page.length) {
    const older = newest().andWhere("post.id < :last", { last: page.at(-1).id });
    show(`${what} cursor`, await older.limit(20).getMany());
  }
  show(`${what} offset`, await newest().limit(20).offset(20).getMany());
  show(`${what} take`, await newest().take(20).skip(20).getMany());
}

async function byTime(what, posts) {
  const newest = () => posts().orderBy("post.createdAt", "DESC").addOrderBy("post.id", "DESC").limit(20);
  const page = show(`${what} by time`, await newest().getMany());
  if (page.length) {
    const { createdAt, id } = page.at(-1);
    const older = "(post.createdAt < :createdAt OR (post.createdAt = :createdAt AND post.id < :id))";
    show(`${what} by time, cursor`, await newest().andWhere(older, { createdAt, id }).getMany());
  }
}

async function feeds(manager, reader) {
  const builder = () => manager.createQueryBuilder(Post, "post").innerJoinAndSelect("post.user", "author");
  const join = () => builder().innerJoin(Follow, "follow", "follow.followedId = post.userId").where("follow.followerId = :reader", { reader });
  const followed = (query) => query.subQuery().select("follow.followedId").from(Follow, "follow").where("follow.followerId = :reader").getQuery();
  const subquery = () => builder().where((query) => `post.userId IN ${followed(query)}`).setParameter("reader", reader);
  await pages(`${reader} join`, join);
  await pages(`${reader} subquery`, subquery);
  await pages(`${reader} or mine`, () => builder().where((query) => `(post.userId IN ${followed(query)} OR post.userId = :reader)`).setParameter("reader", reader));
  const follows = await manager.find(Follow, { where: { followerId: reader }, order: { followedId: "ASC" } });
  const authors = follows.map((follow) => follow.followedId);
  await pages(`${reader} list`, () => builder().where("post.userId IN (:...authors)", { authors }));
  // A repository's own way.
  const where = { userId: In(authors) };
  const options = { where, relations: { user: true }, order: { id: "DESC" }, take: 20 };
  const page = show(`${reader} find`, await manager.find(Post, options));
  if (page.length) {
    show(`${reader} find, cursor`, await manager.find(Post, { ...options, where: { ...where, id: LessThan(page.at(-1).id) } }));
  }
  show(`${reader} find, offset`, await manager.find(Post, { ...options, skip: 20 }));
  await byTime(`${reader} join`, join);
  await byTime(`${reader} subquery`, subquery);
}

async function main() {
  await source.initialize();
  for (let reader = 1; reader <= 6; reader++) await feeds(source.manager, reader);
  await source.transaction((manager) => feeds(manager, 7));
  await source.destroy();
}

main();
