#!/bin/sh
# Starts the program of a driver or of an ORM. It knows where each of them is, and nothing of the stories.
#
# Usage: integration/drivers/run.sh DRIVER HOST PORT USER PASSWORD DATABASE TLS CA
#            TLS is 0 or 1, CA a file with the certificate that the other side's is signed by.
#        integration/drivers/run.sh ORM HOST PORT DATABASE     as root without a password
#        integration/drivers/run.sh --has DRIVER|ORM  succeeds if this machine has it
#        integration/drivers/run.sh --names           all drivers
#        integration/drivers/run.sh --orms            all ORMs
# Environment: HEADWATER_DRIVERS        the folder of setup/drivers.sh (default: ~/.cache/headwater/drivers)
#              HEADWATER_MYSQL_PREFIX   the folder of MySQL (default: ~/.cache/headwater/mysql-9.7)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
private=${HEADWATER_DRIVERS:-$HOME/.cache/headwater/drivers}
mysql=${HEADWATER_MYSQL_PREFIX:-$HOME/.cache/headwater/mysql-9.7}
built=$here/../../target/drivers
python=$private/python/bin/python
jar=/usr/share/java/mariadb-java-client.jar
names="mariadb mysql pymysql connector_python mysqlclient odbc node_mysql2 node_mariadb mysqli pdo
dbd_mysql dbd_mariadb ruby_mysql2 connector_j go sqlx mysql_async"
orms="orm_django orm_sqlalchemy orm_active_record orm_eloquent orm_doctrine orm_sequelize orm_typeorm orm_knex
orm_diesel"

quietly() { "$@" >/dev/null 2>&1; }
have() { quietly command -v "$1"; }
has_python() { quietly "$python" -c "import $1"; }
has_node() { [ -d "$private/node/node_modules/$1" ] && have node; }
has_php() { have php && quietly php -r "exit(extension_loaded('$1') ? 0 : 1);"; }

has() {
    case $1 in
        mariadb) have mariadb ;;
        mysql) [ -e "$mysql/.complete" ] ;;
        pymysql) has_python pymysql,cryptography ;;
        connector_python) has_python mysql.connector ;;
        mysqlclient) has_python MySQLdb ;;
        odbc) has_python pyodbc && quietly odbcinst -q -d -n "MariaDB Unicode" ;;
        node_mysql2) has_node mysql2 ;;
        node_mariadb) has_node mariadb ;;
        mysqli) has_php mysqli ;;
        pdo) has_php pdo_mysql ;;
        dbd_mysql) quietly perl -MDBD::mysql -e1 ;;
        dbd_mariadb) quietly perl -MDBD::MariaDB -e1 ;;
        ruby_mysql2) quietly ruby -rmysql2 -e1 ;;
        connector_j) have java && have javac && [ -e $jar ] ;;
        go) [ -x "$built/go" ] ;;
        sqlx | mysql_async | orm_diesel) [ -x "$built/debug/$1" ] ;;
        orm_django) has_python django,MySQLdb ;;
        orm_sqlalchemy) has_python sqlalchemy,pymysql ;;
        orm_active_record) quietly ruby -rmysql2 -ractive_record -e1 ;;
        orm_eloquent) has_php pdo_mysql && [ -e /usr/share/php/Illuminate/Pagination/autoload.php ] ;;
        orm_doctrine)
            has_php pdo_mysql && [ -e /usr/share/php/Doctrine/ORM/autoload.php ] &&
                [ -e /usr/share/php/Symfony/Component/Cache/autoload.php ]
            ;;
        orm_sequelize | orm_typeorm | orm_knex) has_node "${1#orm_}" && has_node mysql2 ;;
        *) return 1 ;;
    esac
}

# The clients' own text of what they saw; how long it took is left out.
tell() {
    "$@" --host="$host" --port="$port" --user="$user" --protocol=tcp --database="$database" \
        --default-character-set=utf8mb4 --force --table -vvv --column-type-info --show-warnings --unbuffered \
        <"$here/cli/timeline.sql" 2>&1 | sed -E 's/ \([0-9. a-z]*sec\)//'
}

case $1 in
    --names) echo $names && exit ;;
    --orms) echo $orms && exit ;;
    --has) if has "$2"; then exit 0; else exit 1; fi ;;
esac

driver=$1
shift
case $driver in
    mariadb | mysql)
        host=$1 port=$2 user=$3 database=$5
        export MYSQL_PWD="$4"
        ;;
esac
case $driver in
    mariadb)
        [ "$6" = 1 ] && tls="--ssl-ca=$7 --ssl-verify-server-cert" || tls=--skip-ssl
        tell mariadb --no-defaults $tls
        ;;
    mysql)
        [ "$6" = 1 ] && tls="--ssl-mode=VERIFY_IDENTITY --ssl-ca=$7" || tls="--ssl-mode=DISABLED --get-server-public-key"
        machine=$(uname -m)
        loader=$(ls "$mysql"/usr/lib*/ld-linux-*.so.* | head -n 1)
        libraries=$mysql/usr/lib/$machine-linux-gnu:$mysql/usr/lib/mysql/private
        tell "$loader" --library-path "$libraries" "$mysql/usr/bin/mysql" --no-defaults $tls \
            --plugin-dir="$mysql/usr/lib/mysql/plugin"
        ;;
    pymysql | connector_python | mysqlclient | odbc) exec "$python" -B "$here/python/with_$driver.py" "$@" ;;
    node_*) NODE_PATH=$private/node/node_modules exec node "$here/node/$driver.cjs" "$@" ;;
    mysqli | pdo) exec php "$here/php/$driver.php" "$@" ;;
    dbd_*) exec perl "$here/perl/dbd.pl" "${driver#dbd_}" "$@" ;;
    ruby_mysql2) exec ruby "$here/ruby/mysql2.rb" "$@" ;;
    connector_j) exec java -cp $jar "$here/java/Timeline.java" "$@" ;;
    go) exec "$built/go" "$@" ;;
    sqlx | mysql_async | orm_diesel) exec "$built/debug/$driver" "$@" ;;
    orm_django | orm_sqlalchemy) exec "$python" -B "$here/python/$driver.py" "$@" ;;
    orm_active_record) exec ruby "$here/ruby/$driver.rb" "$@" ;;
    orm_eloquent | orm_doctrine) exec php "$here/php/$driver.php" "$@" ;;
    orm_sequelize | orm_typeorm | orm_knex)
        NODE_PATH=$private/node/node_modules exec node "$here/node/$driver.cjs" "$@"
        ;;
    *)
        echo "no driver or ORM $driver: one of" $names $orms >&2
        exit 2
        ;;
esac
