"""Database URLs of SQLAlchemy in the master's words."""

import unittest

from brine_openstack import urls


class URLs(unittest.TestCase):
    def test_translated(self):
        for url, want in {
            "mysql+pymysql://os:ospw@127.0.0.1:13306/heat?charset=utf8": "mysql:os:ospw@tcp(127.0.0.1:13306)/heat",
            "mysql+pymysql://os:p%40%3A%2Fw@db/heat": "mysql:os:p@:/w@tcp(db:3306)/heat",
            "mysql://root@localhost/x?unix_socket=/run/my.sock": "mysql:root@unix(/run/my.sock)/x",
            "mariadb+mariadbconnector://u:p@[::1]/x": "mysql:u:p@tcp([::1]:3306)/x",
            "mysql+pymysql://u:p@db/x?ssl_ca=/etc/ca.pem": "mysql:u:p@tcp(db:3306)/x?tls=true",
            "postgresql+psycopg2://u:p%40@db:5433/x?sslmode=require&client_encoding=utf8": "postgres://u:p%40@db:5433/x?sslmode=require",
            "postgresql://u@/x?host=/run/postgresql": "postgres://u@/x?host=%2Frun%2Fpostgresql&sslmode=prefer",
            "postgresql://u:p@db/x": "postgres://u:p@db/x?sslmode=prefer",
            "sqlite:////var/lib/x.db": "/var/lib/x.db",
            "mysql:u:p@tcp(db)/x": "mysql:u:p@tcp(db)/x",
            "/var/lib/x.db": "/var/lib/x.db",
        }.items():
            with self.subTest(url):
                self.assertEqual(urls.shared_database(url), want)

    def test_refused(self):
        for url, want in {
            "oracle://u:secret@db/x": "cannot use a database of the kind 'oracle'",
            "mysql+pymysql://u:secret@db/x?frobnicate=1": "no meaning for these options of the database URL: frobnicate",
            "mysql+pymysql://u:secret@db/x?ssl_cert=/c": "cannot show the database a client certificate",
            "mysql+pymysql://u:secret@db:port/x": "host or port of the database URL cannot be understood",
            "mysql+pymysql://u:secret@db": "names no database",
            "postgresql://u:secret@db/x?service=1": "no meaning for these options of the database URL: service",
            "sqlite:///x.db": "must be a file with an absolute path",
            "secret": "is not a URL",
        }.items():
            with self.subTest(url), self.assertRaises(urls.DatabaseURLError) as caught:
                urls.shared_database(url)
            self.assertIn(want, str(caught.exception))
            self.assertNotIn("secret", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
