"""SQLAlchemy, on PyMySQL: everything is in transactions, as sessions begin one with their first statement."""

import sys

from sqlalchemy import ForeignKey, String, and_, create_engine, exists, func, or_, select, tuple_
from sqlalchemy.dialects.mysql import DATETIME
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, contains_eager, joinedload, mapped_column, relationship, selectinload

_, host, port, database = sys.argv
engine = create_engine(f"mysql+pymysql://root@{host}:{port}/{database}?charset=utf8mb4")


class Base(DeclarativeBase):
    pass


class Follow(Base):
    __tablename__ = "follows"
    id: Mapped[int] = mapped_column(primary_key=True)
    follower_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    followed_id: Mapped[int] = mapped_column(ForeignKey("users.id"))


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50))
    followers: Mapped[list["User"]] = relationship(
        secondary="follows",
        primaryjoin=lambda: User.id == Follow.followed_id,
        secondaryjoin=lambda: User.id == Follow.follower_id,
        viewonly=True,
    )


class Post(Base):
    __tablename__ = "posts"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    body: Mapped[str] = mapped_column(String(200))
    created_at: Mapped[object] = mapped_column(DATETIME(fsp=6))
    deleted_at: Mapped[object] = mapped_column(DATETIME(fsp=6))
    user: Mapped[User] = relationship()


def show(session, what, query):
    posts = session.scalars(query).unique().all()
    for post in posts:
        print(what, post.id, post.user.name, post.body, post.created_at.isoformat())
    return posts


def pages(session, what, query):
    """Cursor pages by id, then a page by offset."""
    query = query.where(Post.deleted_at.is_(None)).options(joinedload(Post.user)).order_by(Post.id.desc()).limit(20)
    page = show(session, f"{what} first", query)
    if page:
        show(session, f"{what} cursor", query.where(Post.id < page[-1].id))
    show(session, f"{what} offset", query.offset(20))


def by_time(session, what, query):
    query = query.where(Post.deleted_at.is_(None)).options(selectinload(Post.user))
    query = query.order_by(Post.created_at.desc(), Post.id.desc()).limit(20)
    page = show(session, f"{what} by time", query)
    if page:
        last = page[-1]
        show(session, f"{what} by time, pair", query.where(tuple_(Post.created_at, Post.id) < tuple_(last.created_at, last.id)))
        older = or_(Post.created_at < last.created_at, and_(Post.created_at == last.created_at, Post.id < last.id))
        show(session, f"{what} by time, cursor", query.where(older))


def joined(reader):
    return select(Post).join(Follow, Follow.followed_id == Post.user_id).where(Follow.follower_id == reader)


def feeds(session, reader):
    followed = select(Follow.followed_id).where(Follow.follower_id == reader)
    pages(session, f"{reader} join", joined(reader))
    pages(session, f"{reader} subquery", select(Post).where(Post.user_id.in_(followed)))
    pages(session, f"{reader} or mine", select(Post).where(or_(Post.user_id.in_(followed), Post.user_id == reader)))
    pages(session, f"{reader} list", select(Post).where(Post.user_id.in_(session.scalars(followed).all())))
    follow = exists().where(Follow.followed_id == Post.user_id, Follow.follower_id == reader)
    pages(session, f"{reader} exists", select(Post).where(follow))
    pages(session, f"{reader} any", select(Post).where(Post.user.has(User.followers.any(User.id == reader))))
    author = aliased(User)
    eager = select(Post).join(Post.user.of_type(author)).join(Follow, Follow.followed_id == author.id)
    eager = eager.where(Follow.follower_id == reader, Post.deleted_at.is_(None)).order_by(Post.id.desc()).limit(20)
    show(session, f"{reader} through the author", eager.options(contains_eager(Post.user.of_type(author))))
    by_time(session, f"{reader} join", joined(reader))
    by_time(session, f"{reader} subquery", select(Post).where(Post.user_id.in_(followed)))


for reader in range(1, 7):
    # One session for a request, whose first read is the reader.
    with Session(engine) as session:
        session.get(User, reader)
        feeds(session, reader)
# The feed is the first read of its transaction.
for reader in range(1, 7):
    with Session(engine) as session:
        pages(session, f"{reader} first read", joined(reader))
with Session(engine.execution_options(isolation_level="READ COMMITTED")) as session:
    feeds(session, 7)
with Session(engine.execution_options(isolation_level="AUTOCOMMIT")) as session:
    feeds(session, 8)
    print(session.scalar(select(func.count()).select_from(joined(8).subquery())))
