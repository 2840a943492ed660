//go:build linux

package lab

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"syscall"
)

//go:embed trove_setup.py
var troveSetup string

// TroveOptions configure Trove in a lab.
type TroveOptions struct {
	// Brine is the path of brine-master; Python is the directory that contains the package brine_openstack.
	Brine, Python string
	// Address is the address at which guests reach the Salt master, by default 127.0.0.1. It must belong to the
	// network of the calling process.
	Address string
	// Versions are the versions of the datastore mariadb. The last one is the default.
	Versions []string
	// Conf contains additional settings of trove.conf by section and name. They override the lab's own.
	Conf map[string]map[string]string
}

// A Trove has the services that StartTrove started: trove-api, trove-taskmanager and trove-conductor, with brine's
// parts instead of the guest's broker.
type Trove struct {
	lab  *Lab
	opts TroveOptions
	conf ini
	// Master is the directory of the Salt master that the services share; URL is the URL of trove-api.
	Master, URL string
	// Guests are the addresses to which guests connect, each a host:port.
	Guests []string
}

// TroveServices are the names of Trove's processes and of their logs.
var TroveServices = []string{"trove-api", "trove-taskmanager", "trove-conductor"}

// StartTrove starts Trove in a lab whose options have the endpoints of Nova, Neutron, Glance, Cinder and Swift, and
// returns when its API answers. It ends with the lab.
func (l *Lab) StartTrove(ctx context.Context, opts TroveOptions) (*Trove, error) {
	api, publish, ret := l.block.take(), l.block.take(), l.block.take()
	t := &Trove{lab: l, opts: opts, Master: l.path("trove", "master"), URL: l.url(api)}
	host := cmp.Or(opts.Address, "127.0.0.1")
	for _, port := range []int{ret, publish} {
		t.Guests = append(t.Guests, net.JoinHostPort(host, fmt.Sprint(port)))
	}
	if l.opts.Endpoints == nil {
		l.opts.Endpoints = map[string]string{}
	}
	l.opts.Endpoints["database"] = t.URL + "/v1.0/%(tenant_id)s"
	if err := l.writeCatalog(ctx); err != nil {
		return nil, err
	}
	broker := fmt.Sprintf("rabbit://guest:guest@%s/", l.hostPort(l.ports.amqp))
	// This is the broker's address for guests.
	guest := ini{"DEFAULT": {"transport_url": broker}}
	credentials := l.serviceAuth("nova")
	conf := ini{
		"DEFAULT": {
			"transport_url": broker, "bind_host": "127.0.0.1", "bind_port": fmt.Sprint(api), "trove_api_workers": "1",
			"trove_conductor_workers": "1", "report_interval": "1", "network_driver": "trove.network.neutron.NeutronDriver",
			"management_networks": "mgmt", "cinder_volume_type": "fast", "guest_config": l.path("trove", "guest.conf"),
			"cloudinit_location":       l.path("trove", "cloudinit"),
			"taskmanager_rpc_encr_key": "0123456789abcdef0123456789abcdef",
			"remote_guest_client":      "brine_openstack.trove_client.guest_client",
			"remote_nova_client":       "brine_openstack.trove_client.nova_client",
			"conductor_manager":        "brine_openstack.trove_conductor.Manager",
		},
		"database": {"connection": l.DSN("trove")},
		"service_credentials": {"auth_url": l.AuthURL(), "region_name": "RegionOne", "project_name": "service", "project_domain_name": "Default",
			"user_domain_name": "Default", "username": "nova", "password": credentials["password"]},
		"keystone_authtoken": credentials,
		"brine": {"directory": t.Master, "program": opts.Brine, "interface": host, "advertise": t.Guests[0],
			"publish_port": fmt.Sprint(publish), "ret_port": fmt.Sprint(ret)},
	}
	conf.merge(opts.Conf)
	t.conf = conf
	for name, text := range map[string]string{"guest.conf": guest.String(), "trove.conf": conf.String(), "setup.py": troveSetup} {
		if err := l.write(text, "trove", name); err != nil {
			return nil, err
		}
	}
	if _, err := l.SQL(ctx, "create database trove character set utf8"); err != nil {
		return nil, err
	}
	argv := append([]string{"/usr/bin/python3", "-W", "ignore", l.path("trove", "setup.py"), l.path("trove", "trove.conf"), "mariadb"}, opts.Versions...)
	if _, err := l.run(ctx, argv...); err != nil {
		return nil, err
	}
	for _, name := range TroveServices {
		if err := t.Start(name); err != nil {
			return nil, err
		}
	}
	return t, await(ctx, "trove-api", l.answers(t.URL), l.Service("trove-api"))
}

// Start starts one of TroveServices, which must not run.
func (t *Trove) Start(name string) error {
	_, err := t.lab.service(spec{name: name, argv: []string{"/usr/bin/python3", "-W", "ignore", "/usr/bin/" + name, "--config-file",
		t.lab.path("trove", "trove.conf")}, env: []string{"PYTHONPATH=" + t.opts.Python}})
	return err
}

// Configure changes settings of trove.conf and restarts some of TroveServices.
func (t *Trove) Configure(settings map[string]map[string]string, services ...string) error {
	t.conf.merge(settings)
	if err := t.lab.write(t.conf.String(), "trove", "trove.conf"); err != nil {
		return err
	}
	// None of them may start the master again with the old settings.
	for _, name := range services {
		t.lab.end(name)
	}
	for _, name := range services {
		if err := t.Start(name); err != nil {
			return err
		}
	}
	return nil
}

// KillMaster kills the master at once, like a crash, and returns its process id.
func (t *Trove) KillMaster() (int, error) {
	b, err := os.ReadFile(t.Master + "/pid")
	if err != nil {
		return 0, err
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		return 0, fmt.Errorf("cannot read the master's pid file: %w", err)
	}
	return pid, syscall.Kill(pid, syscall.SIGKILL)
}
