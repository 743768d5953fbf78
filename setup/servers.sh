#!/bin/sh
# Gets the two servers of the demo and the tests onto this machine: MariaDB from the
# distribution's packages, MySQL 9.7 into a private folder; Galera, for clusters of MariaDB, and Spider, a storage engine for it.
#
# Says what it does, and nothing when there is nothing to do. No service is installed or
# started: only the programs are wanted, each run gets servers of its own.
# Usage: setup/servers.sh [--list | --mariadb]
#        --list names what is there, and installs nothing; --mariadb gets MariaDB alone, which the demo needs.
# Environment: HEADWATER_MYSQL_PREFIX   the folder of MySQL (default: ~/.cache/headwater/mysql-9.7)
#              HEADWATER_GALERA_PREFIX  the folder of Galera (default: ~/.cache/headwater/galera-4)
#              HEADWATER_SPIDER_PREFIX  the folder of Spider (default: ~/.cache/headwater/spider)
#              CI=true                  a machine that cannot get MySQL, Galera or Spider is an error
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
mysql_prefix=${HEADWATER_MYSQL_PREFIX:-$HOME/.cache/headwater/mysql-9.7}
galera_prefix=${HEADWATER_GALERA_PREFIX:-$HOME/.cache/headwater/galera-4}
spider_prefix=${HEADWATER_SPIDER_PREFIX:-$HOME/.cache/headwater/spider}
# Servers live where an ordinary user's PATH often does not look.
PATH="$PATH:/usr/sbin:/usr/local/sbin"

have_mariadb() { have mariadbd && have mariadb-install-db && have mariadb; }
have_mysql() { [ -e "$mysql_prefix/.complete" ]; }
have_galera() { [ -e "$galera_prefix/.complete" ] && have rsync; }

if [ "${1:-}" = --list ]; then
    have_mariadb && mariadbd --version | sed -E 's/.* Ver ([0-9.]+).*/MariaDB \1/'
    if have_mysql; then
        echo "MySQL 9.7"
    else
        echo "(no MySQL: this machine could not get it)"
    fi
    if have_galera; then
        echo "Galera 4"
    else
        echo "(no Galera: this machine could not get it)"
    fi
    exit 0
fi

if ! have_mariadb; then
    # The core packages of mariadb-server and mariadb-client: the programs without the service,
    # which would take port 3306 and start with the machine.
    install_packages mariadb-server-core mariadb-client-core
fi

[ "${1:-}" != --mariadb ] || exit 0

if ! have_mysql && ! "$here/mysql.sh" "$mysql_prefix"; then
    if [ "${CI:-}" = true ]; then
        say "MySQL 9.7 could not be had, and CI needs both servers"
        exit 1
    fi
    say "MySQL 9.7 could not be had: going on with MariaDB alone"
fi

if ! have_galera && ! "$here/galera.sh" "$galera_prefix"; then
    if [ "${CI:-}" = true ]; then
        say "Galera could not be had, and CI needs it"
        exit 1
    fi
    say "Galera could not be had: going on without its stories"
fi
if ! "$here/spider.sh" "$spider_prefix"; then
    if [ "${CI:-}" = true ]; then
        say "Spider could not be had, and CI needs it"
        exit 1
    fi
    say "Spider could not be had: its stories are left out"
fi
