-- The differences between PostgreSQL and MySQL, for database_parts.lua: image, port, and shell scripts.
--   start  makes the database's files at the first start, gives the superuser the password of the Secret, and becomes
--          the server
--   users  makes the database `app` and its users, as the folder /secrets/users has them: a file for each, with the
--          password in it. Users whom an earlier run made and who have no file lose their access
--   stop   tells the server to end without waiting for its clients, where SIGTERM does not say so
-- Both work in the engine's own image and with a distribution's programs. They can be killed at any point and run
-- again. No password is in an argument, in the environment of the server or in a log: passwords go from files through
-- standard input. Names of users are words of [a-z0-9_] (crds/database.yaml), a password can be anything.
local M = {}

M.PostgreSQL = {
  image = "postgres",
  port = 5432,
  scheme = "postgresql",

  start = [[
    umask 077
    PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
    if ! [ -d /data/files ]; then
      rm -rf /data/new
      initdb --pgdata=/data/new --username=postgres --auth=reject --encoding=UTF8
      echo 'host all all all scram-sha-256' >/data/new/pg_hba.conf
      mv /data/new /data/files
    fi
    rm -f /data/files/postmaster.pid
    password=$(sed "s/'/''/g" /secrets/superuser | tr -d '\n')
    printf '%s\n' "ALTER ROLE postgres PASSWORD '$password'" |
      postgres --single -D /data/files -c log_min_error_statement=panic postgres >/dev/null
    exec postgres -D /data/files -c listen_addresses='*' -c unix_socket_directories=
  ]],

  stop = "kill -INT $(head -n 1 /data/files/postmaster.pid)",

  users = [[
    export PGHOST=$SERVER PGUSER=postgres PGPASSWORD="$(cat /secrets/superuser)"
    PGOPTIONS='-c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic'
    export PGOPTIONS="$PGOPTIONS -c client_min_messages=warning"
    until pg_isready -q; do sleep 0.5; done
    query() { psql -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=terse "$@"; }

    query -d postgres <<'SQL'
      SELECT 'CREATE ROLE "moonloop.users"'
        WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'moonloop.users') \gexec
      SELECT 'CREATE DATABASE app OWNER "moonloop.users"'
        WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'app') \gexec
      REVOKE ALL ON DATABASE app, postgres, template1 FROM PUBLIC;
SQL
    wanted=
    for file in /secrets/users/*; do
      [ -f "$file" ] || continue
      export file
      wanted=$wanted,${file##*/}
      query -d app -v user="${file##*/}" <<'SQL'
        \set password `cat "$file"`
        SELECT format('CREATE ROLE %I', :'user')
          WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'user') \gexec
        ALTER ROLE :"user" LOGIN PASSWORD :'password';
        GRANT "moonloop.users" TO :"user";
        ALTER DEFAULT PRIVILEGES FOR ROLE :"user" GRANT ALL ON TABLES TO "moonloop.users";
        ALTER DEFAULT PRIVILEGES FOR ROLE :"user" GRANT ALL ON SEQUENCES TO "moonloop.users";
SQL
    done
    query -d app -v wanted="$wanted" <<'SQL'
      CREATE TEMPORARY TABLE gone AS SELECT rolname AS name
        FROM pg_auth_members JOIN pg_roles ON pg_roles.oid = member
        WHERE roleid = '"moonloop.users"'::regrole AND rolname <> ALL (string_to_array(:'wanted', ','));
      SELECT format('ALTER ROLE %I NOLOGIN', name) FROM gone \gexec
      SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity JOIN gone ON usename = name \g /dev/null
      SELECT format('REASSIGN OWNED BY %1$I TO "moonloop.users"; DROP OWNED BY %1$I; DROP ROLE %1$I', name)
        FROM gone \gexec
SQL
  ]],
}

-- MariaDB's files come with superusers who have no password, for the machine's addresses and its name. They go; no
-- address is resolved to a name.
M.MySQL = {
  image = "mysql",
  port = 3306,
  scheme = "mysql",

  start = [[
    umask 077
    if ! [ -d /data/files ]; then
      rm -rf /data/new
      if command -v mariadb-install-db >/dev/null; then
        mariadb-install-db --no-defaults --datadir=/data/new --auth-root-authentication-method=normal --skip-test-db
      else
        mysqld --no-defaults --datadir=/data/new --initialize-insecure
      fi
      mv /data/new /data/files
    fi
    password=$(sed -z "s/\n\$//; s/[\\\\']/\\\\&/g; s/\n/\\\\n/g" /secrets/superuser)
    cat >/tmp/start.sql <<SQL
    DROP USER IF EXISTS root@'127.0.0.1', root@'::1', root@'$(uname -n)';
    CREATE USER IF NOT EXISTS root@localhost IDENTIFIED BY '$password';
    ALTER USER root@localhost IDENTIFIED BY '$password';
    CREATE USER IF NOT EXISTS root@'%' IDENTIFIED BY '$password';
    ALTER USER root@'%' IDENTIFIED BY '$password';
    GRANT ALL ON *.* TO root@localhost, root@'%' WITH GRANT OPTION;
SQL
    server=$(command -v mariadbd || command -v mysqld)
    exec "$server" --no-defaults --datadir=/data/files --init-file=/tmp/start.sql --bind-address=0.0.0.0 \
      --skip-name-resolve --tmpdir=/tmp --socket=/tmp/mysqld.sock --pid-file=/tmp/mysqld.pid --loose-mysqlx=OFF
  ]],

  users = [[
    export MYSQL_PWD="$(cat /secrets/superuser)"
    client=$(command -v mariadb || command -v mysql)
    query() { "$client" --no-defaults --protocol=tcp -h "$SERVER" -u root -N -B "$@"; }
    until query -e 'DO 1' 2>/dev/null; do sleep 0.5; done

    query <<'SQL'
      CREATE DATABASE IF NOT EXISTS app;
      CREATE DATABASE IF NOT EXISTS moonloop;
      CREATE TABLE IF NOT EXISTS moonloop.users (name VARCHAR(32) PRIMARY KEY);
SQL
    for file in /secrets/users/*; do
      [ -f "$file" ] || continue
      user=${file##*/}
      password=$(sed -z "s/\n\$//; s/[\\\\']/\\\\&/g" "$file")
      query <<SQL
        INSERT IGNORE INTO moonloop.users VALUES ('$user');
        CREATE USER IF NOT EXISTS '$user'@'%' IDENTIFIED BY '$password';
        ALTER USER '$user'@'%' IDENTIFIED BY '$password';
        GRANT ALL ON app.* TO '$user'@'%';
SQL
    done
    known=$(query -e 'SELECT name FROM moonloop.users')
    for user in $known; do
      [ ! -f "/secrets/users/$user" ] || continue
      query -e "DROP USER IF EXISTS '$user'@'%'"
      connections=$(query -e "SELECT id FROM information_schema.processlist WHERE user = '$user'")
      for id in $connections; do
        query -e "KILL $id" || true
      done
      query -e "DELETE FROM moonloop.users WHERE name = '$user'"
    done
  ]],
}

--- Can a server of version `new` open the files of version `old`? Not if the first number differs, nor if it is lower.
function M.can_follow(old, new)
  local numbers, is_first = old:gmatch "%d+", true
  for digits in new:gmatch "%d+" do
    local before = tonumber(numbers() or digits)
    if tonumber(digits) ~= before then
      return not is_first and tonumber(digits) > before
    end
    is_first = false
  end
  return true
end


return M
