package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/vendordata"
)

// rememberTokens is how long a valid service token is not checked again.
const rememberTokens = time.Minute

// openVendordata opens the listener for Nova. It returns nil if the option vendordata is not set.
func openVendordata(s *services) (*api, error) {
	c := s.p.Conf
	if c.Opts["vendordata"] == nil {
		return nil, nil
	}
	o := &conf.Config{Opts: c.Map("vendordata")}
	for name := range o.Opts {
		switch name {
		case "host", "port", "ssl_crt", "ssl_key", "disable_ssl", "eauth", "user", "command",
			"token_ttl":
		default:
			return nil, fmt.Errorf("vendordata: option %q is unknown", name)
		}
	}
	if o.Int("port") <= 0 {
		return nil, errors.New("vendordata: port must be the port to listen on")
	}
	if len(c.Strings("advertise")) == 0 {
		return nil, errors.New("vendordata: the option advertise must say where instances find " +
			"the master")
	}
	check, err := vendordataCheck(s, o)
	if err != nil {
		return nil, err
	}
	server, err := vendordata.New(vendordata.Options{Master: s.master,
		Check:    vendordata.Remember(check, rememberTokens),
		TokenTTL: o.Duration("token_ttl", time.Second), Log: s.p.Log})
	if err != nil {
		return nil, err
	}
	ln, err := listenTCP("vendordata", o)
	if err != nil {
		return nil, err
	}
	if o.Bool("disable_ssl") {
		s.p.Log.Warn("vendordata: join tokens and service tokens go over the network in clear",
			"option", "disable_ssl")
	}
	return &api{name: "vendordata", listener: ln, server: server.HTTP(), stop: func() {},
		log: s.p.Log}, nil
}

// vendordataCheck returns the check for service tokens: a program, or a system of external_auth.
func vendordataCheck(s *services, o *conf.Config) (vendordata.Check, error) {
	command, system := o.Strings("command"), o.String("eauth")
	switch {
	case (len(command) > 0) == (system != ""):
		return nil, errors.New("vendordata: one of command and eauth must say how service tokens " +
			"are checked")
	case len(command) > 0:
		return vendordata.Program(command...)
	case system == eauth.PeerSystem || s.p.Conf.Map("external_auth")[system] == nil:
		return nil, fmt.Errorf("vendordata: external_auth has no system %q for tokens", system)
	}
	user := o.String("user")
	if user == "" {
		user = "nova"
	}
	return vendordata.EAuth(s.auth, system, user), nil
}
