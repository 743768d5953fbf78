<?php

// Laravel's Eloquent: prepared by the server, each statement anew. Soft deletes, `with`, `whereHas`, cursors of its own.

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\SoftDeletes;
use Illuminate\Pagination\Cursor;
use Illuminate\Pagination\CursorPaginator;
use Illuminate\Pagination\Paginator;

// The distribution's is older than its PHP.
error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
require_once 'Illuminate/Database/autoload.php';
require_once 'Illuminate/Pagination/autoload.php';

[, $host, $port, $database] = $argv;
$manager = new Manager();
$manager->addConnection([
    'driver' => 'mysql',
    'host' => $host,
    'port' => $port,
    'database' => $database,
    'username' => 'root',
    'password' => '',
    'charset' => 'utf8mb4',
    'collation' => 'utf8mb4_unicode_ci',
    'strict' => true,
]);
$manager->setAsGlobal();
$manager->bootEloquent();

class User extends Model
{
    public $timestamps = false;

    public function followers()
    {
        return $this->belongsToMany(User::class, 'follows', 'followed_id', 'follower_id');
    }

    public function following()
    {
        return $this->belongsToMany(User::class, 'follows', 'follower_id', 'followed_id');
    }
}

class Post extends Model
{
    use SoftDeletes;

    public $timestamps = false;

    protected $dateFormat = 'Y-m-d H:i:s.u';

    protected $dates = ['created_at'];

    public function user()
    {
        return $this->belongsTo(User::class);
    }
}

function show($what, $posts)
{
    foreach ($posts as $post) {
        echo "$what $post->id {$post->user->name} $post->body {$post->created_at->format('Y-m-d H:i:s.u')}\n";
    }

    return $posts;
}

// A cursor written by hand, a page by offset, and the paginators, which ask for one row more.
function pages($what, callable $posts)
{
    $newest = fn () => $posts()->with('user')->orderByDesc('posts.id');
    $page = show("$what first", $newest()->limit(20)->get());
    if ($page->isNotEmpty()) {
        show("$what cursor", $newest()->where('posts.id', '<', $page->last()->id)->limit(20)->get());
    }
    show("$what offset", $newest()->skip(20)->take(20)->get());
    show("$what simple", $newest()->simplePaginate(15, ['posts.*'], 'page', 2)->items());
    $first = $newest()->cursorPaginate(15, ['posts.*'], 'cursor', null);
    show("$what own cursor", $first->items());
    if ($first->hasMorePages()) {
        show("$what own cursor, then", $newest()->cursorPaginate(15, ['posts.*'], 'cursor', $first->nextCursor())->items());
    }
}

function by_time($what, callable $posts)
{
    $newest = fn () => $posts()->with('user')->orderByDesc('created_at')->orderByDesc('id');
    $first = $newest()->cursorPaginate(15, ['posts.*'], 'cursor', null);
    show("$what by time", $first->items());
    if ($first->hasMorePages()) {
        show("$what by time, then", $newest()->cursorPaginate(15, ['posts.*'], 'cursor', $first->nextCursor())->items());
    }
    show("$what latest", $posts()->with('user')->latest()->limit(20)->get());
}

function feeds($reader)
{
    $me = User::find($reader);
    $followed = fn ($query) => $query->select('followed_id')->from('follows')->where('follower_id', $reader);
    $list = $me->following()->pluck('users.id');
    pages("$reader list", fn () => Post::whereIn('user_id', $list->all()));
    pages("$reader list and me", fn () => Post::whereIn('user_id', $list->concat([$reader])->all()));
    pages("$reader subquery", fn () => Post::whereIn('user_id', $followed));
    pages("$reader or mine", fn () => Post::where(fn ($query) => $query->whereIn('user_id', $followed)->orWhere('user_id', $reader)));
    $join = fn () => Post::join('follows', 'follows.followed_id', '=', 'posts.user_id')->where('follows.follower_id', $reader);
    pages("$reader join", fn () => $join()->select('posts.*'));
    $has = fn () => Post::whereHas('user', fn ($user) => $user->whereHas('followers', fn ($by) => $by->where('follows.follower_id', $reader)));
    pages("$reader has", $has);
    by_time("$reader list", fn () => Post::whereIn('user_id', $list->all()));
    by_time("$reader subquery", fn () => Post::whereIn('user_id', $followed));
}

foreach (range(1, 6) as $reader) {
    feeds($reader);
}
Manager::connection()->transaction(fn () => feeds(7));
