<?php

// Doctrine: DQL with joins, `MEMBER OF` and subqueries, fetch joins, and its paginator.

use Doctrine\Common\Collections\ArrayCollection;
use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\Pagination\Paginator;

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
require_once 'Doctrine/ORM/autoload.php';
require_once 'Symfony/Component/Cache/autoload.php';

[, $host, $port, $database] = $argv;

#[ORM\Entity]
#[ORM\Table(name: 'users')]
class User
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue]
    public $id;

    #[ORM\Column(type: 'string', length: 50)]
    public $name;

    #[ORM\ManyToMany(targetEntity: User::class)]
    #[ORM\JoinTable(name: 'follows')]
    #[ORM\JoinColumn(name: 'followed_id')]
    #[ORM\InverseJoinColumn(name: 'follower_id')]
    public $followers;

    public function __construct()
    {
        $this->followers = new ArrayCollection();
    }
}

#[ORM\Entity]
#[ORM\Table(name: 'follows')]
class Follow
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue]
    public $id;

    #[ORM\ManyToOne(targetEntity: User::class)]
    public $follower;

    #[ORM\ManyToOne(targetEntity: User::class)]
    public $followed;
}

#[ORM\Entity]
#[ORM\Table(name: 'posts')]
class Post
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue]
    public $id;

    #[ORM\ManyToOne(targetEntity: User::class)]
    public $user;

    #[ORM\Column(type: 'string', length: 200)]
    public $body;

    #[ORM\Column(name: 'created_at', type: 'string')]
    public $createdAt;

    #[ORM\Column(name: 'deleted_at', type: 'string', nullable: true)]
    public $deletedAt;
}

$connection = DriverManager::getConnection([
    'driver' => 'pdo_mysql',
    'host' => $host,
    'port' => (int) $port,
    'user' => 'root',
    'dbname' => $database,
    'charset' => 'utf8mb4',
]);
$setup = ORMSetup::createAttributeMetadataConfiguration([__DIR__], true, null, new Symfony\Component\Cache\Adapter\ArrayAdapter());
$setup->setAutoGenerateProxyClasses(Doctrine\Common\Proxy\AbstractProxyFactory::AUTOGENERATE_EVAL);
$setup->setNamingStrategy(new Doctrine\ORM\Mapping\UnderscoreNamingStrategy());
$entities = new EntityManager($connection, $setup);

function show($what, $posts)
{
    $posts = [...$posts];
    foreach ($posts as $post) {
        echo "$what $post->id {$post->user->name} $post->body $post->createdAt\n";
    }

    return $posts;
}

// Cursor pages by id, a page by offset, and the paginator without its count: it looks into the result for joins of many rows.
function pages($what, $reader, callable $posts)
{
    $newest = fn () => $posts()->andWhere('p.deletedAt IS NULL')->orderBy('p.id', 'DESC')->setMaxResults(20);
    $page = show("$what first", $newest()->getQuery()->getResult());
    if ($page) {
        $older = $newest()->andWhere('p.id < :last')->setParameter('last', end($page)->id, 'bigint');
        show("$what cursor", $older->getQuery()->getResult());
    }
    show("$what offset", $newest()->setFirstResult(20)->getQuery()->getResult());
    show("$what paginator", new Paginator($newest()->setFirstResult(20)->getQuery(), false));
}

function by_time($what, callable $posts)
{
    $newest = fn () => $posts()->andWhere('p.deletedAt IS NULL')->orderBy('p.createdAt', 'DESC')->addOrderBy('p.id', 'DESC')->setMaxResults(20);
    $page = show("$what by time", $newest()->getQuery()->getResult());
    if ($page) {
        $older = $newest()->andWhere('p.createdAt < :at OR (p.createdAt = :at AND p.id < :last)');
        $older->setParameter('at', end($page)->createdAt)->setParameter('last', end($page)->id);
        show("$what by time, cursor", $older->getQuery()->getResult());
    }
}

function feeds($entities, $reader)
{
    $posts = fn () => $entities->createQueryBuilder()->select('p, u')->from(Post::class, 'p')->join('p.user', 'u')->setParameter('me', $reader, 'integer');
    $followed = 'SELECT IDENTITY(f.followed) FROM Follow f WHERE f.follower = :me';
    $join = fn () => $posts()->join(Follow::class, 'f', 'WITH', 'f.followed = p.user')->where('f.follower = :me');
    pages("$reader join", $reader, $join);
    pages("$reader subquery", $reader, fn () => $posts()->where("p.user IN ($followed)"));
    pages("$reader or mine", $reader, fn () => $posts()->where("p.user IN ($followed) OR p.user = :me"));
    pages("$reader member of", $reader, fn () => $posts()->where(':me MEMBER OF u.followers'));
    pages("$reader exists", $reader, fn () => $posts()->where('EXISTS (SELECT 1 FROM Follow f WHERE f.followed = p.user AND f.follower = :me)'));
    $ids = $entities->getConnection()->fetchFirstColumn('SELECT followed_id FROM follows WHERE follower_id = ?', [$reader]);
    $list = fn () => $entities->createQueryBuilder()->select('p, u')->from(Post::class, 'p')->join('p.user', 'u')->where('p.user IN (:authors)')->setParameter('authors', $ids);
    pages("$reader list", $reader, $list);
    by_time("$reader join", $join);
    by_time("$reader subquery", fn () => $posts()->where("p.user IN ($followed)"));
}

foreach (range(1, 6) as $reader) {
    feeds($entities, $reader);
    $entities->clear();
}
$entities->wrapInTransaction(fn () => feeds($entities, 7));
