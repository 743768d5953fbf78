"use strict";
// What the ORMs' programs share: arguments, and how a page is shown.

const [host, port, database] = process.argv.slice(2);

/** Shows a page of posts that were loaded with their authors. */
function show(what, posts) {
  for (const post of posts) {
    const at = post.createdAt.toISOString();
    console.log(what, String(post.id), post.user.name, post.body, at);
  }
  return posts;
}

module.exports = { host, port: Number(port), database, show };
