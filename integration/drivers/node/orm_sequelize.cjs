"use strict";
// Sequelize, on mysql2: paranoid models, `include`, lists of ids, subqueries as literals.

const { Sequelize, DataTypes, Op } = require("sequelize");
const { host, port, database, show } = require("./orm.cjs");

const sequelize = new Sequelize(database, "root", "", { host, port, dialect: "mysql", logging: false, define: { timestamps: false, underscored: true } });
const User = sequelize.define("user", { id: { type: DataTypes.BIGINT, primaryKey: true }, name: DataTypes.STRING }, { tableName: "users" });
const Follow = sequelize.define("follow", { followerId: DataTypes.BIGINT, followedId: DataTypes.BIGINT }, { tableName: "follows" });
const Post = sequelize.define(
  "post",
  { id: { type: DataTypes.BIGINT, primaryKey: true }, body: DataTypes.STRING, createdAt: DataTypes.DATE(6) },
  { tableName: "posts", paranoid: true, timestamps: true, updatedAt: false },
);
Post.belongsTo(User);
User.hasMany(Follow, { as: "passive", foreignKey: "followedId" });

/** Cursor pages by id, then a page by offset, which counts beside it. */
async function pages(what, where, { include = [User], transaction } = {}) {
  const newest = { include, order: [["id", "DESC"]], limit: 20, transaction };
  const page = show(`${what} first`, await Post.findAll({ ...newest, where }));
  if (page.length) {
    show(`${what} cursor`, await Post.findAll({ ...newest, where: { [Op.and]: [where, { id: { [Op.lt]: page.at(-1).id } }] } }));
  }
  const { rows, count } = await Post.findAndCountAll({ ...newest, where, offset: 20 });
  show(`${what} offset of ${count}`, rows);
}

async function byTime(what, where, transaction) {
  const newest = { include: [User], order: [["createdAt", "DESC"], ["id", "DESC"]], limit: 20, transaction };
  const page = show(`${what} by time`, await Post.findAll({ ...newest, where }));
  if (page.length) {
    const { id, createdAt } = page.at(-1);
    const older = { [Op.or]: [{ createdAt: { [Op.lt]: createdAt } }, { createdAt, id: { [Op.lt]: id } }] };
    show(`${what} by time, cursor`, await Post.findAll({ ...newest, where: { [Op.and]: [where, older] } }));
  }
}

async function feeds(reader, transaction) {
  const followed = await Follow.findAll({ where: { followerId: reader }, transaction });
  const authors = followed.map((follow) => follow.followedId);
  await pages(`${reader} list`, { userId: authors }, { transaction });
  await pages(`${reader} list and me`, { userId: { [Op.in]: [...authors, reader] } }, { transaction });
  const subquery = sequelize.literal(`(SELECT followed_id FROM follows WHERE follower_id = ${sequelize.escape(reader)})`);
  await pages(`${reader} subquery`, { userId: { [Op.in]: subquery } }, { transaction });
  await pages(`${reader} or mine`, { [Op.or]: [{ userId: { [Op.in]: subquery } }, { userId: reader }] }, { transaction });
  // The author is loaded with the post, and the edge that leads to it.
  const through = { model: User, required: true, include: [{ model: Follow, as: "passive", required: true, where: { followerId: reader } }] };
  await pages(`${reader} through the author`, {}, { include: [through], transaction });
  await byTime(`${reader} list`, { userId: authors }, transaction);
  await byTime(`${reader} subquery`, { userId: { [Op.in]: subquery } }, transaction);
}

async function main() {
  for (let reader = 1; reader <= 6; reader++) await feeds(reader);
  await sequelize.transaction((transaction) => feeds(7, transaction));
  await sequelize.close();
}

main();
