package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/eauth/ldap"
	"github.com/brine-salt/brine/master/pillar"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/protocol"
)

// services are the parts of a stand-alone master in addition to the master itself: external authentication, and
// runners and wheel functions for tools on this host, for permitted minions (peer_run), and for the HTTP interface.
type services struct {
	p             *saltcli.Program
	auth          *eauth.Auth
	pillars       *pillar.Roots
	master        *master.Master // set by join
	runner, wheel *runner.Client // set by join
	minion        *masterMinion  // set by join

	runs  context.Context // for functions that no client waits for
	stop  context.CancelFunc
	wg    sync.WaitGroup
	slots chan struct{}
}

// maxRuns limits the concurrent functions that no client waits for.
const maxRuns = 256

// newServices creates the services of a configuration. join sets their master later.
func newServices(p *saltcli.Program) (*services, error) {
	c := p.Conf
	s := &services{p: p, pillars: pillarFiles(p.Conf, p.Log), slots: make(chan struct{}, maxRuns)}
	systems := eauth.Systems()
	if secret := c.String("sharedsecret"); secret != "" {
		systems["sharedsecret"] = eauth.SharedSecret{Secret: secret}
	}
	if _, ok := c.Map("external_auth")["ldap"]; ok {
		directory, err := ldap.New(c.Opts, p.Log)
		if err != nil {
			return nil, err
		}
		systems["ldap"] = directory
	}
	rules := maps.Clone(c.Map("external_auth"))
	for name := range rules {
		// As in stock if a module lacks a library or a setting: log-ins with it fail.
		if systems[name] == nil {
			p.Log.Error("external_auth: log-ins with this system fail, since this master "+
				"does not have it", "eauth", name)
			delete(rules, name)
		}
	}
	match := func(tgtType string, tgt any) ([]string, error) { return s.master.Match(tgtType, tgt) }
	tenant, err := tenantFinder(c)
	if err != nil {
		return nil, err
	}
	s.auth, err = eauth.New(eauth.Options{Config: rules, Systems: systems,
		TokenLife: c.Duration("token_expire", time.Second),
		Match:     match, Permissive: c.Bool("permissive_acl"), Tenant: tenant, Log: p.Log})
	if err != nil {
		return nil, err
	}
	s.runs, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// tenantFinder returns a function that finds the tenant of a log-in, from the option tenants in rest_cherrypy.
// Without that option no user has a tenant.
func tenantFinder(c *conf.Config) (func(eauth.Token) (string, error), error) {
	o := &conf.Config{Opts: c.Map("rest_cherrypy")}
	if _, set := o.Opts["tenants"]; !set {
		return nil, nil
	}
	rules := o.Map("tenants")
	if rules == nil {
		return nil, errors.New("rest_cherrypy: tenants must be a map of names and tenants")
	}
	whose, err := eauth.TenantRules(rules)
	if err != nil {
		return nil, fmt.Errorf("rest_cherrypy: %w", err)
	}
	return whose, nil
}

// options sets the fields of o that concern the services.
func (s *services) options(o *master.Options) {
	o.Local.Auth, o.Local.Call = s.auth, s.call
	o.Pillar.Files = s.pillars
	o.Minions.Runner = func(ctx context.Context, id, fun string, args []any,
		kwargs map[string]any) (any,
		error) {
		return s.runner.Call(ctx,
			runner.Request{Fun: fun, Args: args, Kwargs: kwargs, User: id}).Return, nil
	}
}

// join sets the master. It must be called before the master serves.
func (s *services) join(m *master.Master) {
	c := s.p.Conf
	host := runner.Embedded(m, c.String("id"), shownOptions(c), c.String("cachedir"), s.p.Log)
	host.Timeout, host.Gather = c.Duration("timeout", time.Second),
		c.Duration("gather_job_timeout", time.Second)
	host.PillarTop, host.User = s.pillars.Top, localmaster.User(c)
	host.Key = m.LocalKey(localmaster.User(c))
	s.minion = newMasterMinion(host, c, s.pillars, s.p.Log)
	s.master, s.runner, s.wheel = m, runner.NewClient(host), runner.NewWheel(host)
}

// filesChanged is called after a fetch of git repositories found changes, and only after join. With fileserver_events
// it sends an event. Stock also sends one after a fetch without changes.
func (s *services) filesChanged() {
	if s.p.Conf.Bool("fileserver_events") {
		s.master.Events().Publish("salt/fileserver/gitfs/update",
			map[string]any{"changed": true, "backend": "gitfs"})
	}
	s.master.Files().Forget()
}

// shownOptions returns the options that functions and templates may show, without secrets.
func shownOptions(c *conf.Config) map[string]any {
	shown := maps.Clone(c.Opts)
	for _, secret := range []string{"sharedsecret", "signing_key_pass", "key_pass",
		"shared_database", "auth.ldap.bindpw"} {
		delete(shown, secret)
	}
	return shown
}

// close stops the functions that are still running and waits for them.
func (s *services) close() {
	s.stop()
	s.wg.Wait()
}

// call runs a function for a tool. Unless the tool waits, the function continues in the background and its result is
// sent as an event.
func (s *services) call(ctx context.Context, c master.MasterCall) (master.MasterResult, error) {
	q := runner.Request{Fun: c.Fun, Args: c.Args, Kwargs: c.Kwargs, Named: c.Named,
		Saltenv: c.Saltenv, User: c.User, JID: string(protocol.NewJID(time.Now()))}
	client, tag := s.runner, "salt/run/"+q.JID
	if c.Kind == "wheel" {
		client, tag = s.wheel, "salt/wheel/"+q.JID
	}
	out := master.MasterResult{JID: q.JID, Tag: tag}
	if client.Argspec(c.Fun) == nil {
		return out, master.ErrNoFunction
	}
	if c.Wait {
		out.Data = client.Call(ctx, q).Data
		out.Data["tag"] = tag
		return out, nil
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return out, errors.New("too many runners are active; try again later")
	}
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		client.Call(s.runs, q)
	})
	return out, nil
}
