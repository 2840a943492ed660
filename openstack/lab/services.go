//go:build linux

package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed wsgi_server.py
var wsgiServer []byte

// DSN returns the address of a database in the lab's MariaDB for Python's SQLAlchemy.
func (l *Lab) DSN(database string) string {
	return fmt.Sprintf("mysql+pymysql://%s:%s@%s/%s?charset=utf8", sqlUser, sqlPassword, l.hostPort(l.ports.sql), database)
}

// SQLAddr returns the host:port, user and password of the lab's MariaDB. The user may create databases.
func (l *Lab) SQLAddr() (addr, user, password string) {
	return l.hostPort(l.ports.sql), sqlUser, sqlPassword
}

// SQL executes statements in MariaDB and returns the rows, with tabs between the values.
func (l *Lab) SQL(ctx context.Context, statements string) (string, error) {
	return l.runInput(ctx, statements, "mariadb", "--no-defaults", "--socket="+l.path("my", "sock"), "--user=root", "--batch",
		"--skip-column-names")
}

func (l *Lab) startSQL(ctx context.Context) error {
	p, err := l.service(spec{name: "mariadb", argv: []string{"/usr/sbin/mariadbd", "--no-defaults", "--user=root",
		"--datadir=" + l.path("my", "data"), "--socket=" + l.path("my", "sock"), "--pid-file=" + l.path("my", "pid"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", l.ports.sql), "--max-connections=500", "--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M", "--innodb-doublewrite=0", "--sync-binlog=0"}})
	if err != nil {
		return err
	}
	return await(ctx, "MariaDB", func(ctx context.Context) error {
		_, err := l.SQL(ctx, "select 1")
		return err
	}, p)
}

// stopSQL ends MariaDB so that its files are complete.
func (l *Lab) stopSQL(ctx context.Context) error {
	for _, p := range l.services {
		if p.Name != "mariadb" {
			continue
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case <-p.done:
			return p.err
		case <-ctx.Done():
			return fmt.Errorf("cannot stop MariaDB: %w", ctx.Err())
		}
	}
	return errors.New("MariaDB does not run")
}

// initKeystone creates keystone's tables, keys, users and roles.
func (l *Lab) initKeystone(ctx context.Context) error {
	manage := func(args ...string) error {
		argv := append([]string{"/usr/bin/python3", "/usr/bin/keystone-manage", "--config-file", l.path("ks", "keystone.conf")}, args...)
		_, err := l.run(ctx, argv...)
		return err
	}
	url := l.AuthURL()
	for _, args := range [][]string{
		{"db_sync"},
		{"fernet_setup", "--keystone-user", "root", "--keystone-group", "root"},
		{"credential_setup", "--keystone-user", "root", "--keystone-group", "root"},
		{"bootstrap", "--bootstrap-password", adminPassword, "--bootstrap-region-id", "RegionOne", "--bootstrap-public-url", url,
			"--bootstrap-internal-url", url, "--bootstrap-admin-url", url},
	} {
		if err := manage(args...); err != nil {
			return err
		}
	}
	if err := l.startKeystone(ctx); err != nil {
		return err
	}
	return l.Heat.k.populate(ctx)
}

func (l *Lab) startKeystone(ctx context.Context) error {
	p, err := l.service(spec{name: "keystone", argv: l.wsgi("/usr/bin/python3", "keystone.server.wsgi:initialize_public_application",
		l.ports.keystone, "keystone"),
		env: []string{"OS_KEYSTONE_CONFIG_FILES=" + l.path("ks", "keystone.conf"), "OS_KEYSTONE_CONFIG_DIR=" + l.path("ks")}})
	if err != nil {
		return err
	}
	return await(ctx, "keystone", l.answers(l.AuthURL()), p)
}

// answers returns a function that checks whether an HTTP service answers at all.
func (l *Lab) answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := httpClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		io.Copy(io.Discard, res.Body)
		if res.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("status %d", res.StatusCode)
		}
		return nil
	}
}

// catalog returns the addresses of the services by type.
func (l *Lab) catalog() map[string]string {
	urls := map[string]string{
		"identity":       l.AuthURL(),
		"orchestration":  l.url(l.ports.heat) + "/v1/%(tenant_id)s",
		"cloudformation": l.url(l.ports.cfn) + "/v1",
	}
	if l.opts.Swift {
		urls["object-store"] = l.url(l.ports.swift) + "/v1/AUTH_%(tenant_id)s"
	}
	if l.opts.Zaqar {
		urls["messaging"] = l.url(l.ports.zaqar)
		urls["messaging-websocket"] = fmt.Sprintf("ws://%s", l.hostPort(l.ports.zaqarWS))
	}
	for k, v := range l.opts.Endpoints {
		urls[k] = v
	}
	return urls
}

// Endpoint returns the URL of a service in the catalog by type, or "" if it is missing.
func (l *Lab) Endpoint(kind string) string { return l.catalog()[kind] }

// writeCatalog writes the addresses of this lab's services to keystone. The database is a copy of a template, so it
// writes the rows directly.
func (l *Lab) writeCatalog(ctx context.Context) error {
	urls := l.catalog()
	var b strings.Builder
	b.WriteString("use keystone; delete from endpoint; delete from service;\n")
	for kind, url := range urls {
		if strings.ContainsAny(kind+url, `'\`) {
			return fmt.Errorf("bad endpoint %q %q", kind, url)
		}
		fmt.Fprintf(&b, "set @s = replace(uuid(), '-', '');\ninsert into service (id, type, enabled, extra) values (@s, '%s', 1, '{\"name\": \"%s\"}');\n",
			kind, kind)
		for _, iface := range []string{"public", "internal", "admin"} {
			fmt.Fprintf(&b, "insert into endpoint (id, interface, region_id, service_id, url, enabled, extra) "+
				"values (replace(uuid(), '-', ''), '%s', 'RegionOne', @s, '%s', 1, '{}');\n", iface, url)
		}
	}
	_, err := l.SQL(ctx, b.String())
	return err
}

func (l *Lab) startRabbit(ctx context.Context) error {
	servers, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
	if len(servers) == 0 {
		return errors.New("cannot start RabbitMQ: rabbitmq-server is missing")
	}
	dir := l.path("rabbit")
	for _, d := range []string{"mnesia", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	epmds, _ := filepath.Glob("/usr/lib/erlang/erts-*/bin/epmd")
	if len(epmds) == 0 {
		epmds = []string{"epmd"}
	}
	if _, err := l.service(spec{name: "epmd", argv: []string{epmds[0], "-port", fmt.Sprint(l.ports.epmd), "-address", "127.0.0.1"}}); err != nil {
		return err
	}
	// Use a process namespace, because the script starts the broker in the background, where it would outlive the
	// script.
	p, err := l.service(spec{name: "rabbitmq", ownPIDs: true, argv: []string{servers[0]}, env: []string{
		"HOME=" + dir, "ERL_EPMD_ADDRESS=127.0.0.1", fmt.Sprintf("ERL_EPMD_PORT=%d", l.ports.epmd), "RABBITMQ_NODENAME=lab@localhost",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", fmt.Sprintf("RABBITMQ_NODE_PORT=%d", l.ports.amqp),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", l.ports.amqpDist), "RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"), "RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"), "RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none"}})
	if err != nil {
		return err
	}
	return await(ctx, "RabbitMQ", func(ctx context.Context) error {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", l.hostPort(l.ports.amqp))
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
			return err
		}
		_, err = io.ReadFull(c, make([]byte, 7)) // the header of Connection.Start
		return err
	}, p)
}

// wsgi returns a command that serves an application on a loopback port.
func (l *Lab) wsgi(python, application string, port int, argv ...string) []string {
	return append([]string{python, l.path("wsgi_server.py"), application, "127.0.0.1", fmt.Sprint(port)}, argv...)
}

// startAPIs starts heat-api and heat-api-cfn. They need keystone and the broker only with the first request.
func (l *Lab) startAPIs(ctx context.Context) error {
	conf := []string{"--config-file", l.path("heat", "heat.conf")}
	apis := []struct {
		name, application string
		port              int
	}{{"heat-api", "heat.api.openstack.wsgi:init_application", l.ports.heat}, {"heat-api-cfn", "heat.api.cfn.wsgi:init_application", l.ports.cfn}}
	procs := make([]*Process, len(apis))
	for i, a := range apis {
		argv := append([]string{"/usr/bin/python3", "/usr/bin/" + a.name}, conf...)
		if l.opts.HeatPython != "" { // it has no programs for the APIs, only applications
			argv = l.wsgi(l.heatPython(), a.application, a.port, append([]string{a.name}, conf...)...)
		}
		p, err := l.service(spec{name: a.name, argv: argv})
		if err != nil {
			return err
		}
		procs[i] = p
	}
	for i, a := range apis {
		if err := await(ctx, a.name, l.answers(l.url(a.port)), procs[i]); err != nil {
			return err
		}
	}
	return nil
}
