//! Diesel, on the C client: it prepares every statement on the server and caches it.

use std::env::args;

use chrono::NaiveDateTime;
use diesel::dsl::{exists, sql};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::Bool;

diesel::table! {
    users (id) {
        id -> Bigint,
        name -> Varchar,
    }
}

diesel::table! {
    follows (id) {
        id -> Bigint,
        follower_id -> Bigint,
        followed_id -> Bigint,
    }
}

diesel::table! {
    posts (id) {
        id -> Bigint,
        user_id -> Bigint,
        body -> Varchar,
        created_at -> Datetime,
        deleted_at -> Nullable<Datetime>,
    }
}

diesel::joinable!(posts -> users (user_id));
diesel::allow_tables_to_appear_in_same_query!(users, follows, posts);

#[derive(Queryable, Selectable)]
#[diesel(table_name = posts)]
struct Post {
    id: i64,
    body: String,
    created_at: NaiveDateTime,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
struct User {
    name: String,
}

type Page = Vec<(Post, User)>;

fn show(what: &str, page: QueryResult<Page>) -> Page {
    let page = page.unwrap();
    for (post, user) in &page {
        println!("{what} {} {} {} {}", post.id, user.name, post.body, post.created_at);
    }
    page
}

/// Cursor pages by id, a page by offset, and a page by time with its cursor: of `posts` joined with their authors, under a condition.
macro_rules! pages {
    ($connection:expr, $what:expr, $from:expr, $condition:expr) => {{
        let (connection, what) = (&mut *$connection, $what);
        let all = || {
            $from
                .filter($condition)
                .filter(posts::deleted_at.is_null())
                .select((Post::as_select(), User::as_select()))
        };
        let newest = || all().order(posts::id.desc());
        let page = show(&format!("{what} first"), newest().limit(20).load(connection));
        if let Some((last, _)) = page.last() {
            let older = newest().filter(posts::id.lt(last.id));
            show(&format!("{what} cursor"), older.limit(20).load(connection));
        }
        show(
            &format!("{what} offset"),
            newest().limit(20).offset(20).load(connection),
        );
        let newest = || all().order((posts::created_at.desc(), posts::id.desc())).limit(20);
        let page = show(&format!("{what} by time"), newest().load(connection));
        if let Some((last, _)) = page.last() {
            let at = last.created_at;
            let tie = posts::created_at.eq(at).and(posts::id.lt(last.id));
            let older = newest().filter(posts::created_at.lt(at).or(tie));
            show(&format!("{what} by time, cursor"), older.load(connection));
        }
    }};
}

fn feeds(connection: &mut MysqlConnection, reader: i64) {
    let followed = || {
        follows::table
            .filter(follows::follower_id.eq(reader))
            .select(follows::followed_id)
    };
    let authors: Vec<i64> = followed().load(connection).unwrap();
    let from = || posts::table.inner_join(users::table);
    pages!(
        connection,
        format!("{reader} list"),
        from(),
        posts::user_id.eq_any(&authors)
    );
    pages!(
        connection,
        format!("{reader} subquery"),
        from(),
        posts::user_id.eq_any(followed())
    );
    let mine = || posts::user_id.eq_any(followed()).or(posts::user_id.eq(reader));
    pages!(connection, format!("{reader} or mine"), from(), mine());
    let follow = || {
        follows::table
            .filter(follows::followed_id.eq(posts::user_id))
            .filter(follows::follower_id.eq(reader))
    };
    pages!(connection, format!("{reader} exists"), from(), exists(follow()));
    let joined = || from().inner_join(follows::table.on(follows::followed_id.eq(posts::user_id)));
    pages!(
        connection,
        format!("{reader} join"),
        joined(),
        follows::follower_id.eq(reader)
    );
    // A condition as raw SQL.
    pages!(
        connection,
        format!("{reader} sql"),
        joined(),
        follows::follower_id
            .eq(reader)
            .and(sql::<Bool>("posts.body LIKE 'post %'"))
    );
    let boxed = from().filter(posts::user_id.eq_any(authors)).into_boxed::<Mysql>();
    show(
        &format!("{reader} boxed"),
        boxed
            .select((Post::as_select(), User::as_select()))
            .order(posts::id.desc())
            .limit(20)
            .load(connection),
    );
}

fn main() {
    let given: Vec<String> = args().skip(1).collect();
    let [host, port, database] = &given[..] else {
        panic!("usage: orm_diesel HOST PORT DATABASE");
    };
    let connection = &mut MysqlConnection::establish(&format!("mysql://root@{host}:{port}/{database}")).unwrap();
    for reader in 1..=6 {
        feeds(connection, reader);
    }
    let done: QueryResult<()> = connection.transaction(|connection| {
        feeds(connection, 7);
        Ok(())
    });
    done.unwrap();
}
