# Rails' ActiveRecord, on mysql2: joins, `where` with a relation and with a list, `includes` and `eager_load`.
require "active_record"

host, port, database = ARGV
ActiveRecord::Base.establish_connection(
  adapter: "mysql2", host: host, port: port.to_i, username: "root", database: database, encoding: "utf8mb4"
)

class Follow < ActiveRecord::Base
  belongs_to :follower, class_name: "User"
  belongs_to :followed, class_name: "User"
end

class User < ActiveRecord::Base
  has_many :posts
  has_many :active_follows, class_name: "Follow", foreign_key: :follower_id
  has_many :passive_follows, class_name: "Follow", foreign_key: :followed_id
  has_many :following, through: :active_follows, source: :followed
  has_many :feed, through: :following, source: :posts
end

class Post < ActiveRecord::Base
  belongs_to :user
  default_scope { where(deleted_at: nil) }
end

def show(what, posts)
  posts.each { |post| puts [what, post.id, post.user.name, post.body, post.created_at.iso8601(6)].join(" ") }
  posts
end

# Cursor pages by id, then a page by offset.
def pages(what, posts)
  newest = posts.order(id: :desc).limit(20)
  page = show("#{what} first", newest.to_a)
  show("#{what} cursor", newest.where("posts.id < ?", page.last.id).to_a) unless page.empty?
  show("#{what} offset", newest.offset(20).to_a)
end

def by_time(what, posts)
  newest = posts.order(created_at: :desc, id: :desc).limit(20)
  page = show("#{what} by time", newest.to_a)
  return if page.empty?
  last = page.last
  older = "posts.created_at < :at OR (posts.created_at = :at AND posts.id < :id)"
  show("#{what} by time, cursor", newest.where(older, at: last.created_at, id: last.id).to_a)
  show("#{what} by time, pair", newest.where("(posts.created_at, posts.id) < (?, ?)", last.created_at, last.id).to_a)
end

def feeds(reader)
  me = User.find(reader)
  followed = Follow.where(follower_id: reader).select(:followed_id)
  # The tutorial's own.
  tutorial = "user_id IN (SELECT followed_id FROM follows WHERE follower_id = :user_id) OR user_id = :user_id"
  pages("#{reader} tutorial", Post.where(tutorial, user_id: reader).includes(:user))
  pages("#{reader} through", me.feed.includes(:user))
  pages("#{reader} relation", Post.where(user_id: followed).includes(:user))
  pages("#{reader} eager", Post.where(user_id: followed).eager_load(:user))
  pages("#{reader} relation or mine", Post.where(user_id: followed).or(Post.where(user_id: reader)).preload(:user))
  pages("#{reader} list", Post.where(user_id: me.following_ids + [reader]).includes(:user))
  pages("#{reader} join", Post.joins(user: :passive_follows).where(follows: { follower_id: reader }).includes(:user))
  by_time("#{reader} relation", Post.where(user_id: followed).includes(:user))
  by_time("#{reader} through", me.feed.preload(:user))
end

(1..6).each { |reader| feeds(reader) }
ActiveRecord::Base.transaction { feeds(7) }
