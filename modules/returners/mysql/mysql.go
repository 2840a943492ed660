// Package mysql is Salt's returner "mysql", for MySQL and MariaDB. Salt's source: salt/returners/mysql.py.
package mysql

import (
	"crypto/tls"
	"database/sql"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/modules/returners/sqldb"
)

func init() { returners.Register(Module) }

// Module returns the returner "mysql".
func Module() *modules.Module {
	return dialect().Module("mysql", "", "Keep returns in MySQL or MariaDB.")
}

func dialect() *sqldb.Dialect {
	return &sqldb.Dialect{
		Open:     open,
		Insert:   "INSERT INTO salt_returns (fun, jid, `return`, id, success, full_ret) VALUES (?, ?, ?, ?, ?, ?)",
		Values:   sqldb.Columns("1", "0"),
		SaveLoad: "INSERT IGNORE INTO jids (jid, `load`) VALUES (?, ?)",
		GetLoad:  "SELECT jid, `load` FROM jids WHERE jid = ?",
		GetJIDs:  "SELECT DISTINCT jid, `load` FROM jids",
		LastOfFun: "SELECT s.id, s.full_ret FROM salt_returns s JOIN (SELECT MAX(jid) AS jid FROM salt_returns GROUP BY fun, id) last ON s.jid = last.jid " +
			"WHERE s.fun = ?",
		StandAlone: true,
	}
}

func open(c *modules.Call, ret map[string]any) (*sql.DB, error) {
	o := returners.Options(c, "mysql", ret, returners.Attrs("host", "user", "pass", "db", "port", "ssl_ca", "ssl_cert", "ssl_key"),
		map[string]any{"host": "salt", "user": "salt", "pass": "salt", "db": "salt", "port": int64(3306)})
	conf := mysql.NewConfig()
	conf.User, conf.Passwd, conf.DBName = sqldb.Text(o, "user"), sqldb.Text(o, "pass"), sqldb.Text(o, "db")
	conf.Net, conf.Addr = "tcp", net.JoinHostPort(sqldb.Text(o, "host"), sqldb.Text(o, "port"))
	conf.Timeout, conf.ReadTimeout, conf.WriteTimeout = 10*time.Second, time.Minute, time.Minute
	var err error
	if conf.TLS, err = tlsConfig(c, o); err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, fmt.Errorf("cannot use database: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// tlsConfig returns the TLS configuration of the options ssl_ca, ssl_cert and ssl_key, or nil if none is set.
func tlsConfig(c *modules.Call, o map[string]any) (*tls.Config, error) {
	ca, cert, key := sqldb.Text(o, "ssl_ca"), sqldb.Text(o, "ssl_cert"), sqldb.Text(o, "ssl_key")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	conf := &tls.Config{ServerName: sqldb.Text(o, "host")}
	if ca != "" {
		var err error
		if conf.RootCAs, err = certpool.Read(c.Path(ca)); err != nil {
			return nil, fmt.Errorf("cannot read ssl_ca: %w", err)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Path(cert), c.Path(key))
		if err != nil {
			return nil, fmt.Errorf("cannot use ssl_cert: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}
