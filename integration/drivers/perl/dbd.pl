#!/usr/bin/perl
# DBD::mysql and DBD::MariaDB, over MariaDB's C library: the first argument says which (mysql, mariadb).
# Each script is told twice: with statements that the driver makes up, and with those the server prepares.
use strict;
use warnings;
use DBI;
use Digest::MD5 qw(md5_hex);

my ($which, $host, $port, $user, $password, $database, $tls, $ca) = @ARGV;
my ($driver, $prefix) = $which eq 'mariadb' ? ('MariaDB', 'mariadb') : ('mysql', 'mysql');
my $TAIL = 'SELECT message.id,user_id,body FROM message '
    . 'INNER JOIN fetch_timeline_tt USING(id) ORDER BY message.id DESC LIMIT 20';
my $DIGITS = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n, 'word' "
    . 'FROM digit a, digit b, digit c, digit e ORDER BY n';

sub text { join ' | ', map { defined $_ ? $_ : 'NULL' } @_ }

sub connect_as {
    my ($password, %more) = @_;
    my %options = (PrintError => 0, RaiseError => 0, AutoCommit => 1, "${prefix}_multi_statements" => 1, %more);
    # DBD::mysql over MariaDB's C library knows no way to insist on it; the story looks whether it came to be.
    my %tls = (ssl => 1, ssl_ca_file => $ca, $which eq 'mysql' ? (ssl_optional => 1) : (ssl_verify_server_cert => 1));
    %options = (%options, map { ("${prefix}_$_" => $tls{$_}) } keys %tls) if $tls;
    return DBI->connect("DBI:$driver:database=$database;host=$host;port=$port", $user, $password, \%options);
}

sub told {
    my ($db, $sql, @given) = @_;
    print "-- $sql\n";
    my $statement = $db->prepare($sql);
    if (!$statement || !$statement->execute(@given)) {
        print text('error', $db->err, $db->state, $db->errstr), "\n";
        return;
    }
    while (1) {
        if ($statement->{NUM_OF_FIELDS}) {
            for my $what ('NAME', 'TYPE', 'PRECISION', 'SCALE', 'NULLABLE', "${prefix}_type_name", "${prefix}_table",
                "${prefix}_length", "${prefix}_is_pri_key", "${prefix}_is_auto_increment", "${prefix}_is_num") {
                my $list = $statement->{$what};
                print "$what ", text(@$list), "\n" if $list;
            }
            my $rows = $statement->fetchall_arrayref;
            my $lines = join "\n", map { text(@$_) } @$rows;
            utf8::encode($lines) if utf8::is_utf8($lines);
            print length $lines > 20000 ? md5_hex($lines) : $lines, "\n";
        }
        print text('rows', $statement->rows, 'id', $statement->{"${prefix}_insertid"},
            'warnings', $statement->{"${prefix}_warning_count"}), "\n";
        # DBD::MariaDB has one result only where the server prepares.
        last if $which eq 'mariadb' && $db->{mariadb_server_prepare};
        last unless $statement->more_results;
    }
    print text('error', $statement->err, $statement->state, $statement->errstr), "\n" if $statement->err;
    $statement->finish;
}

for my $prepared (0, 1) {
    my $db = connect_as($password, "${prefix}_server_prepare" => $prepared) or die $DBI::errstr;
    print text("prepared by the server: $prepared", $db->{"${prefix}_serverinfo"}, $db->{"${prefix}_protoinfo"}), "\n";
    $db->do('TRUNCATE note');
    $db->do('DELETE FROM message WHERE id > 10000');
    told($db, 'SELECT VERSION(), DATABASE(), CURRENT_USER()');
    told($db, "SHOW STATUS LIKE 'Ssl_version'");
    told($db, 'SELECT * FROM sample WHERE id < ? ORDER BY id', 4);
    told($db, 'SELECT nothing FROM nowhere');
    told($db, 'THIS IS NO SQL');
    told($db, 'INSERT INTO note (word, amount) VALUES (?, ?), (?, ?)', 'word', 1, undef, undef);
    told($db, 'INSERT INTO note (id) VALUES (1)');
    told($db, 'SELECT id, word, ? AS given FROM note WHERE id > ? OR word <=> ? ORDER BY id', 'given', 1, undef);
    told($db, "SELECT CAST('12x' AS SIGNED)");
    told($db, 'SHOW WARNINGS');
    for my $call ('CALL fetch_timeline_ids(7)', 'call fetch_timeline_ids2( 7,6000 )', 'CALL fetch_timeline_ids(999)') {
        told($db, $_) for $call, $TAIL, $TAIL;
        print text($db->do($call), $db->{"${prefix}_insertid"}), "\n";
        told($db, 'SELECT COUNT(*), MAX(id) FROM fetch_timeline_tt');
    }
    told($db, 'CALL fetch_timeline_ids(?)', 4);
    told($db, $TAIL);
    told($db, 'CALL fetch_timeline_ids(1, 2, 3)');
    told($db, "CALL fetch_timeline_ids(7); $TAIL; SELECT 1") unless $prepared;
    $db->begin_work;
    told($db, "INSERT INTO message (id, user_id, body) VALUES (20000, 1, 'rolled back')");
    told($db, $_) for 'CALL fetch_timeline_ids(7)', $TAIL;
    $db->rollback;
    told($db, "INSERT INTO message (id, user_id, body) VALUES (20001, 1, 'kept')");
    told($db, $_) for 'CALL fetch_timeline_ids(7)', $TAIL;
    told($db, 'SELECT id, word, amount FROM note ORDER BY id');
    told($db, $DIGITS);
    print 'ping ', $db->ping ? 1 : 0, "\n";
    $db->disconnect;
}
connect_as('wrong');
print text('wrong password', $DBI::err, $DBI::state, $DBI::errstr), "\n";
