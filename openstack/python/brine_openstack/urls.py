"""Database URLs of SQLAlchemy in the words of the master's option shared_database."""

import urllib.parse

from brine_openstack import master


class DatabaseURLError(master.Error):
    """A database URL that the master cannot use. The text never has the URL, because it may have a password."""


def shared_database(url):
    """Return shared_database for a URL of SQLAlchemy, or for one that is in the master's words already.

    Raises DatabaseURLError if the master has no such database, or an option of the URL has no meaning for it.
    """
    if url.startswith("/") or url.startswith("mysql:") and not url.startswith("mysql://"):
        return url
    scheme, sep, rest = url.partition("://")
    kind = scheme.partition("+")[0]
    if not sep:
        raise DatabaseURLError("the database is not a URL like mysql+pymysql://user:password@host/name")
    if kind == "sqlite":
        if not rest.startswith("//"):
            raise DatabaseURLError("an SQLite database must be a file with an absolute path, sqlite:////path")
        return rest[1:].partition("?")[0]
    if kind in ("mysql", "mariadb"):
        return _mysql(url)
    if kind in ("postgresql", "postgres"):
        return _postgres(url)
    raise DatabaseURLError("the master cannot use a database of the kind %r: there are mysql, postgresql and sqlite" % kind)


def _parts(url):
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # not a number: ValueError
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise DatabaseURLError("the host or port of the database URL cannot be understood") from None
    name = urllib.parse.unquote(parts.path[1:])
    if not name:
        raise DatabaseURLError("the database URL names no database")
    return parts, query, name


# Options of PyMySQL and mysqlclient that say nothing to the master: it always speaks utf8mb4 and sets its own timeouts.
_MYSQL_IGNORED = {"charset", "use_unicode", "connect_timeout", "read_timeout", "write_timeout", "binary_prefix", "plugin", "init_command", "sql_mode"}
_MYSQL_TLS = {"ssl_ca", "ssl_cert", "ssl_key", "ssl_capath", "ssl_cipher", "ssl", "ssl_check_hostname", "ssl_verify_cert", "ssl_verify_identity"}


def _mysql(url):
    parts, query, name = _parts(url)
    user = urllib.parse.unquote(parts.username or "")
    if ":" in user:
        raise DatabaseURLError("the master cannot use a MySQL user whose name has a colon")
    who = user
    if parts.password is not None:
        who += ":" + urllib.parse.unquote(parts.password)
    host = parts.hostname or "localhost"
    if "unix_socket" in query:
        where = "unix(%s)" % query.pop("unix_socket")
    else:
        where = "tcp(%s:%d)" % ("[%s]" % host if ":" in host else host, parts.port or 3306)
    options = ""
    if _MYSQL_TLS & query.keys():
        if query.keys() & {"ssl_cert", "ssl_key"}:
            raise DatabaseURLError("the master cannot show the database a client certificate (ssl_cert, ssl_key)")
        options = "?tls=true"
        query = {k: v for k, v in query.items() if k not in _MYSQL_TLS}
    unknown = sorted(query.keys() - _MYSQL_IGNORED)
    if unknown:
        raise DatabaseURLError("the master has no meaning for these options of the database URL: %s" % ", ".join(unknown))
    return "mysql:%s@%s/%s%s" % (who, where, urllib.parse.quote(name, safe=""), options)


# What both libpq and the master's driver know.
_POSTGRES = {"sslmode", "sslcert", "sslkey", "sslrootcert", "connect_timeout", "application_name", "options"}
_POSTGRES_IGNORED = {"client_encoding", "target_session_attrs", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"}


def _postgres(url):
    parts, query, name = _parts(url)
    unknown = sorted(query.keys() - _POSTGRES - _POSTGRES_IGNORED - {"host"})
    if unknown:
        raise DatabaseURLError("the master has no meaning for these options of the database URL: %s" % ", ".join(unknown))
    keep = {k: v for k, v in query.items() if k in _POSTGRES or k == "host"}
    # The default of libpq, which is the service's; the master's driver would insist on TLS.
    keep.setdefault("sslmode", "prefer")
    return "postgres://%s/%s?%s" % (parts.netloc, urllib.parse.quote(name, safe=""), urllib.parse.urlencode(keep))
