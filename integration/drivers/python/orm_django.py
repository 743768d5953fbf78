"""Django, on mysqlclient: joins by the names of relations, subqueries of querysets, `select_related`, atomic requests."""

import sys

import django
from django.apps import AppConfig
from django.conf import settings
from django.db import connection, models, transaction

_, host, port, database = sys.argv


class FeedConfig(AppConfig):
    name = "__main__"
    label = "feed"
    default_auto_field = "django.db.models.BigAutoField"


settings.configure(
    INSTALLED_APPS=["__main__.FeedConfig"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.mysql",
            "HOST": host,
            "PORT": port,
            "USER": "root",
            "PASSWORD": "",
            "NAME": database,
            "OPTIONS": {"charset": "utf8mb4"},
        }
    },
    USE_TZ=True,
)
django.setup()


class User(models.Model):
    name = models.CharField(max_length=50)
    following = models.ManyToManyField("self", through="Follow", symmetrical=False, related_name="followers")

    class Meta:
        app_label = "feed"
        db_table = "users"


class Follow(models.Model):
    follower = models.ForeignKey(User, models.CASCADE, related_name="following_set")
    followed = models.ForeignKey(User, models.CASCADE, related_name="follower_set")

    class Meta:
        app_label = "feed"
        db_table = "follows"


class Posts(models.Manager):
    """Soft delete, as apps write it."""

    def get_queryset(self):
        return super().get_queryset().filter(deleted_at__isnull=True)


class Post(models.Model):
    user = models.ForeignKey(User, models.CASCADE, related_name="posts")
    body = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)
    objects = Posts()

    class Meta:
        app_label = "feed"
        db_table = "posts"


def show(what, posts):
    posts = list(posts)
    for post in posts:
        print(what, post.id, post.user.name, post.body, post.created_at.isoformat())
    return posts


def pages(what, posts):
    """Cursor pages by id, then pages by offset, as `Paginator` cuts them."""
    newest = posts.select_related("user").order_by("-id")
    page = show(f"{what} first", newest[:20])
    if page:
        show(f"{what} cursor", newest.filter(id__lt=page[-1].id)[:20])
    show(f"{what} offset", newest[20:40])


def by_time(what, posts):
    newest = posts.select_related("user").order_by("-created_at", "-id")
    page = show(f"{what} by time", newest[:20])
    if page:
        last = page[-1]
        older = models.Q(created_at__lt=last.created_at) | models.Q(created_at=last.created_at, id__lt=last.id)
        show(f"{what} by time, cursor", newest.filter(older)[:20])


def feeds(reader):
    me = User.objects.get(id=reader)
    pages(f"{reader} join", Post.objects.filter(user__follower_set__follower=me))
    pages(f"{reader} subquery", Post.objects.filter(user__in=me.following.all()))
    pages(f"{reader} values", Post.objects.filter(user_id__in=Follow.objects.filter(follower=me).values("followed_id")))
    followed = list(me.following_set.values_list("followed_id", flat=True))
    pages(f"{reader} list", Post.objects.filter(user_id__in=[*followed, reader]))
    mine = models.Q(user__in=Follow.objects.filter(follower=me).values("followed")) | models.Q(user=me)
    pages(f"{reader} or mine", Post.objects.filter(mine))
    follow = Follow.objects.filter(follower=me, followed=models.OuterRef("user"))
    pages(f"{reader} exists", Post.objects.filter(models.Exists(follow)))
    by_time(f"{reader} join", Post.objects.filter(user__follower_set__follower=me))
    by_time(f"{reader} values", Post.objects.filter(user_id__in=Follow.objects.filter(follower=me).values("followed_id")))


for reader in range(1, 7):
    feeds(reader)
# As ATOMIC_REQUESTS does it.
with transaction.atomic():
    feeds(7)
connection.close()
