package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/descriptors"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/protocol/transport"
)

// api is the HTTP interface that rest_cherrypy configures. In stock Salt it is a separate process (salt-api); here
// the master serves it.
type api struct {
	name     string // of the option
	listener net.Listener
	server   *http.Server
	stop     func() // ends requests without a time limit
	log      *slog.Logger
}

// openAPIs opens all HTTP listeners of the configuration.
func openAPIs(s *services) ([]*api, error) {
	var list []*api
	for _, open := range []func(*services) (*api, error){openAPI, openVendordata} {
		a, err := open(s)
		if err != nil {
			for _, a := range list {
				_ = a.listener.Close()
				a.stop()
			}
			return nil, err
		}
		if a != nil {
			list = append(list, a)
		}
	}
	return list, nil
}

// openAPI opens the HTTP interface. It returns nil if rest_cherrypy is not configured.
func openAPI(s *services) (*api, error) {
	p, c := s.p, s.p.Conf
	o := &conf.Config{Opts: c.Map("rest_cherrypy")}
	if len(o.Opts) == 0 || o.Opts["port"] == nil && o.String("socket") == "" {
		return nil, nil
	}
	clients := c.Strings("netapi_enable_clients")
	if clients == nil {
		clients = []string{} // as in stock, no client unless configured
	}
	for _, name := range []string{"enable_sessions", "log_access_file", "log_error_file",
		"root_prefix", "ssl_chain", "webhook_url"} {
		if o.Opts[name] != nil {
			p.Log.Warn("This master does not have an option of rest_cherrypy", "option", name)
		}
	}
	if c.Map("external_auth")[eauth.PeerSystem] != nil && o.String("socket") == "" {
		p.Log.Warn("external_auth: rules of peer are for callers on a unix socket, and " +
			"rest_cherrypy has no option socket: nobody is let in by them")
	}
	rest, err := restapi.New(restapi.Options{Master: s.master, Auth: s.auth, Runner: s.runner,
		Wheel:   s.wheel,
		Clients: clients, MaxBody: int64(o.Int("max_request_body_size")),
		OpenHooks: o.Bool("webhook_disable_auth"), Metrics: o.Bool("metrics"),
		RequestRate: float64(o.Int("request_rate")), RequestBurst: float64(o.Int("request_burst")),
		OpenStats: o.Bool("stats_disable_auth"), Origins: o.Strings("cors_origin"),
		Addresses: allowedAddresses(o),
		Pages: restapi.Pages{App: o.String("app"), AppPath: o.String("app_path"),
			Static: o.String("static"), StaticPath: o.String("static_path"),
			Favicon: o.String("favicon")},
		Timeout: c.Duration("rest_timeout", time.Second), Log: p.Log})
	if err != nil {
		return nil, err
	}
	a := &api{name: "rest_cherrypy", stop: rest.Close, log: p.Log, server: rest.HTTP()}
	if a.listener, err = listenAPI(o); err != nil {
		rest.Close()
		return nil, err
	}
	return a, nil
}

// allowedAddresses returns the addresses from which clients may log in: for all users, and for each user.
func allowedAddresses(o *conf.Config) restapi.Addresses {
	a := restapi.Addresses{Authorized: o.Strings("authorized_ips")}
	if acl := o.Map("api_acl"); len(acl) > 0 {
		users := &conf.Config{Opts: (&conf.Config{Opts: acl}).Map("users")}
		a.Users = make(map[string][]string, len(users.Opts))
		for name := range users.Opts {
			a.Users[name] = users.Strings(name)
		}
	}
	return a
}

const (
	// maxConnections limits the connections to the HTTP interface, and to that of vendordata. Each may use at most one
	// descriptorPart of the process's file descriptors, which the minions' ports leave free. One address may use at
	// most one addressPart of the connections.
	maxConnections, descriptorPart, addressPart = 4096, 16, 4
)

// limitListener limits the connections of an HTTP listener.
func limitListener(ln net.Listener) net.Listener {
	n := max(addressPart, min(maxConnections, descriptors.Limit()/descriptorPart))
	return restapi.Limit(ln, n, n/addressPart)
}

// listenAPI listens on the port or the socket.
func listenAPI(o *conf.Config) (net.Listener, error) {
	if path := o.String("socket"); path != "" {
		// Only remove a socket, which a killed master may have left.
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("rest_cherrypy: socket: %s exists and is not a socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("rest_cherrypy: socket %s: %w", path, syscall.EADDRINUSE)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("rest_cherrypy: socket: %w", err)
		}
		ln, err := net.Listen("unix", path)
		if err == nil {
			err = os.Chmod(path, 0o660)
		}
		if err != nil {
			return nil, fmt.Errorf("rest_cherrypy: socket: %w", err)
		}
		return limitListener(ln), nil
	}
	return listenTCP("rest_cherrypy", o)
}

// listenTCP listens on the port of an option like rest_cherrypy, with TLS unless the option turns it off.
func listenTCP(name string, o *conf.Config) (net.Listener, error) {
	cert, key := o.String("ssl_crt"), o.String("ssl_key")
	plain := o.Bool("disable_ssl") || o.Bool("debug")
	if !plain && (cert == "" || key == "") {
		return nil, errors.New(name +
			": Options 'ssl_crt' and 'ssl_key' are required if SSL is not disabled")
	}
	host := o.String("host")
	if host == "" {
		host = "0.0.0.0"
	}
	var config *tls.Config
	if !plain {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	ln, err := transport.BindTCP(net.JoinHostPort(host, strconv.Itoa(o.Int("port"))),
		transport.KeepAlive{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ln = limitListener(ln)
	if config != nil {
		ln = tls.NewListener(restapi.SpaceHandshakes(ln), config)
	}
	return ln, nil
}

// serve serves until ctx ends. It then waits up to five seconds for pending requests.
func (a *api) serve(ctx context.Context) error {
	a.log.Info("The HTTP interface listens", "option", a.name, "addr", a.listener.Addr().String())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		a.stop()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if a.server.Shutdown(grace) != nil {
			_ = a.server.Close()
		}
	}()
	err := a.server.Serve(a.listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	a.stop()
	return fmt.Errorf("%s: %w", a.name, err)
}
