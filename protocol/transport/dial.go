package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"syscall"
)

// NetDial returns the dialer that is used if ClientOptions.Dial is nil. source is the local address, "" for any; k is
// set on the connection. IPv4 and IPv6 are raced, and every address of a name is tried.
func NetDial(k KeepAlive, source string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{KeepAlive: -1}
		if source != "" {
			local, err := sourceAddr(source)
			if err != nil {
				return nil, err
			}
			d.LocalAddr = local
			d.Control = func(_, _ string, rc syscall.RawConn) error { return reuseAddr(rc) }
		}
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := SetKeepAlive(c, k); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
}

// sourceAddr parses "ip", "ip:port" or ":port".
func sourceAddr(s string) (*net.TCPAddr, error) {
	host, port := s, "0"
	if ip := net.ParseIP(s); ip == nil {
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return nil, fmt.Errorf("transport: bad source address %q: %w", s, err)
		}
	}
	a := &net.TCPAddr{}
	if host != "" {
		if a.IP = net.ParseIP(host); a.IP == nil {
			return nil, fmt.Errorf("transport: bad source address %q: not an IP address", s)
		}
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("transport: bad source address %q: port %q is not in 0..65535", s, port)
	}
	a.Port = n
	return a, nil
}

// SetKeepAlive applies k to c if it is a TCP connection, and does nothing to others.
func SetKeepAlive(c net.Conn, k KeepAlive) error {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	k = k.withDefaults()
	conf := net.KeepAliveConfig{Enable: !k.Disabled, Idle: k.Idle, Interval: k.Interval, Count: k.Count}
	err := t.SetKeepAliveConfig(conf)
	if err != nil && runtime.GOOS == "windows" {
		// Windows before version 1709 cannot set the count, and wine cannot set every time. The system's values apply
		// then.
		conf.Count = -1
		if err = t.SetKeepAliveConfig(conf); err != nil {
			err = t.SetKeepAlive(conf.Enable)
		}
	}
	if err != nil {
		return fmt.Errorf("transport: cannot set keepalive: %w", err)
	}
	if k.UserTimeout > 0 {
		if err := setUserTimeout(t, k.UserTimeout); err != nil {
			return fmt.Errorf("transport: cannot set user timeout: %w", err)
		}
	}
	return nil
}

// BindTCP listens on addr and sets k on the connections that it accepts. For transports.
func BindTCP(addr string, k KeepAlive) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1}
	// Package net prefers Multipath TCP, whose sockets lack some of the options that accepted connections inherit.
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) { // this text already has the address
			err = op.Err
		}
		return nil, fmt.Errorf("transport: cannot listen on %q: %w", addr, err)
	}
	if inheritKeepAlive(ln, k) {
		return ln, nil
	}
	return &keepAliveListener{Listener: ln, keepAlive: k}, nil
}

// keepAliveListener sets keepalive on each accepted connection, on systems where connections do not inherit it.
type keepAliveListener struct {
	net.Listener
	keepAlive KeepAlive
}

func (l *keepAliveListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// An error means that the connection died since the accept; its first read reports that.
	_ = SetKeepAlive(c, l.keepAlive)
	return c, nil
}

// listenerFor returns ln, or a new listener on addr if ln is nil. Accepted connections get k.
func listenerFor(ln net.Listener, addr string, k KeepAlive) (net.Listener, error) {
	if ln == nil {
		return BindTCP(addr, k)
	}
	return &keepAliveListener{Listener: ln, keepAlive: k}, nil
}

// Listeners opens the two listeners of o. wrap is false for a transport without TLS. For transports.
func (o ServerOptions) Listeners(wrap bool) (pub, req net.Listener, err error) {
	if pub, err = listenerFor(o.PublishListener, o.PublishAddr, o.KeepAlive.forSubscribers()); err != nil {
		return nil, nil, err
	}
	if req, err = listenerFor(o.RequestListener, o.RequestAddr, o.KeepAlive); err != nil {
		pub.Close()
		return nil, nil, err
	}
	if wrap && o.Wrap != nil {
		pub, req = o.Wrap(pub), o.Wrap(req)
	}
	return pub, req, nil
}
