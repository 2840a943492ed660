//go:build linux

package lab

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"time"
)

//go:embed swift_rings.py
var swiftRings string

//go:embed zaqar_websocket.py
var zaqarWebsocket string

// startSwift starts swift with one device and without its background daemons, because objects live only as long as
// the lab.
func (l *Lab) startSwift(ctx context.Context) error {
	if err := os.MkdirAll(l.path("swift", "devices", "d1"), 0o700); err != nil {
		return err
	}
	if err := l.writeSwift(); err != nil {
		return err
	}
	p := l.ports
	if _, err := l.run(ctx, "/usr/bin/python3", l.path("swift", "rings.py"), l.path("swift"), fmt.Sprint(p.account), fmt.Sprint(p.container),
		fmt.Sprint(p.object)); err != nil {
		return err
	}
	var proxy *Process
	for _, kind := range []string{"account", "container", "object", "proxy"} {
		s, err := l.service(spec{name: "swift-" + kind, argv: []string{"/usr/bin/python3", "/usr/bin/swift-" + kind + "-server",
			l.path("swift", kind+"-server.conf"), "-v"}})
		if err != nil {
			return err
		}
		proxy = s
	}
	ports := map[string]int{"account": p.account, "container": p.container, "object": p.object, "proxy": p.swift}
	for kind, port := range ports {
		if err := await(ctx, "swift-"+kind, l.answers(l.url(port)+"/healthcheck"), proxy); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) writeSwift() error {
	files := map[string]ini{} // swift.conf is Debian's
	common := func(port int) map[string]string {
		return map[string]string{"bind_ip": "127.0.0.1", "bind_port": fmt.Sprint(port), "workers": "0", "user": "root",
			"swift_dir": l.path("swift"), "devices": l.path("swift", "devices"), "mount_check": "false", "fallocate_reserve": "0",
			"log_level": "INFO", "recon_cache_path": l.path("swift")}
	}
	for kind, port := range map[string]int{"account": l.ports.account, "container": l.ports.container, "object": l.ports.object} {
		files[kind+"-server.conf"] = ini{
			"DEFAULT":                 common(port),
			"pipeline:main":           {"pipeline": "healthcheck " + kind + "-server"},
			"app:" + kind + "-server": {"use": "egg:swift#" + kind},
			"filter:healthcheck":      {"use": "egg:swift#healthcheck"},
		}
	}
	auth := l.serviceAuth("swift")
	maps.Copy(auth, map[string]string{"paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
		"delay_auth_decision": "true", "include_service_catalog": "false"})
	proxy := ini{
		"DEFAULT": common(l.ports.swift),
		"pipeline:main": {"pipeline": "catch_errors gatekeeper healthcheck tempurl authtoken keystoneauth copy slo dlo versioned_writes " +
			"proxy-server"},
		"app:proxy-server":        {"use": "egg:swift#proxy", "account_autocreate": "true"},
		"filter:authtoken":        auth,
		"filter:keystoneauth":     {"use": "egg:swift#keystoneauth", "operator_roles": "admin, heat_stack_owner, member"},
		"filter:tempurl":          {"use": "egg:swift#tempurl", "methods": "GET HEAD PUT POST DELETE"},
		"filter:versioned_writes": {"use": "egg:swift#versioned_writes", "allow_versioned_writes": "true"},
	}
	for _, f := range strings.Fields("catch_errors gatekeeper healthcheck copy slo dlo") {
		proxy["filter:"+f] = map[string]string{"use": "egg:swift#" + f}
	}
	files["proxy-server.conf"] = proxy
	for name, f := range files {
		if err := l.write(f.String(), "swift", name); err != nil {
			return err
		}
	}
	return l.write(swiftRings, "swift", "rings.py")
}

// startZaqar starts zaqar twice, as an HTTP and as a WebSocket server, with messages in swift and the rest in
// MariaDB. Debian has no MongoDB, and its zaqar 15 lacks the Lua scripts that the redis store needs.
func (l *Lab) startZaqar(ctx context.Context) error {
	if err := os.MkdirAll(l.path("zaqar"), 0o700); err != nil {
		return err
	}
	ws := map[string]string{"bind": "127.0.0.1", "port": fmt.Sprint(l.ports.zaqarWS), "external_port": fmt.Sprint(l.ports.zaqarWS),
		"notification_bind": "127.0.0.1", "notification_port": fmt.Sprint(l.block.take())}
	for kind, name := range map[string]string{"wsgi": "zaqar.conf", "websocket": "zaqar-websocket.conf"} {
		conf := ini{
			"DEFAULT":                     {"auth_strategy": "keystone", "unreliable": "true", "use_stderr": "true"},
			"keystone_authtoken":          l.serviceAuth("zaqar"),
			"trustee":                     l.serviceAuth("zaqar"),
			"drivers":                     {"transport": kind, "message_store": "swift", "management_store": "sqlalchemy"},
			"drivers:transport:wsgi":      {"bind": "127.0.0.1", "port": fmt.Sprint(l.ports.zaqar)},
			"drivers:transport:websocket": ws,
			"drivers:message_store:swift": {"auth_url": l.AuthURL(), "uri": "swift://zaqar:" + servicePasswords["zaqar"] + "@/service",
				"region_name": "RegionOne"},
			"drivers:management_store:sqlalchemy": {"uri": l.DSN("zaqar")},
			"signed_url":                          {"secret_key": "0123456789abcdef0123456789abcdef"},
		}
		if err := l.write(conf.String(), "zaqar", name); err != nil {
			return err
		}
	}
	if _, err := l.run(ctx, "/usr/bin/python3", "/usr/bin/zaqar-sql-db-manage", "--config-file", l.path("zaqar", "zaqar.conf"),
		"upgrade", "head"); err != nil {
		return err
	}
	if err := l.write(zaqarWebsocket, "zaqar", "websocket.py"); err != nil {
		return err
	}
	programs := map[string]string{"zaqar": "/usr/bin/zaqar-server", "zaqar-websocket": l.path("zaqar", "websocket.py")}
	for name, port := range map[string]int{"zaqar": l.ports.zaqar, "zaqar-websocket": l.ports.zaqarWS} {
		p, err := l.service(spec{name: name, argv: []string{"/usr/bin/python3", programs[name], "--config-file",
			l.path("zaqar", name+".conf")}})
		if err != nil {
			return err
		}
		if err := await(ctx, name, func(ctx context.Context) error {
			c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", l.hostPort(port))
			if err == nil {
				c.Close()
			}
			return err
		}, p); err != nil {
			return err
		}
	}
	return nil
}
