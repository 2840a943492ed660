//go:build linux

package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An ini is a configuration file of an OpenStack service: values by section and name.
type ini map[string]map[string]string

func (c ini) String() string {
	var b strings.Builder
	for _, section := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "[%s]\n", section)
		for _, name := range slices.Sorted(maps.Keys(c[section])) {
			fmt.Fprintf(&b, "%s = %s\n", name, c[section][name])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// merge adds the values of more, which override existing ones.
func (c ini) merge(more map[string]map[string]string) {
	for section, values := range more {
		if c[section] == nil {
			c[section] = map[string]string{}
		}
		maps.Copy(c[section], values)
	}
}

// write creates a file of the lab and its directory.
func (l *Lab) write(content string, path ...string) error {
	name := l.path(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(content), 0o600)
}

// serviceAuth returns the options with which a service signs in at keystone.
func (l *Lab) serviceAuth(user string) map[string]string {
	base := l.url(l.ports.keystone)
	return map[string]string{
		"auth_type": "password", "auth_url": base, "www_authenticate_uri": base, "project_name": "service",
		"project_domain_name": "Default", "user_domain_name": "Default", "username": user, "password": servicePasswords[user],
		"service_token_roles": "admin", "service_token_roles_required": "false",
	}
}

func (l *Lab) writeConfiguration() error {
	ks := ini{
		"DEFAULT":        {"use_stderr": "true"},
		"database":       {"connection": l.DSN("keystone"), "max_pool_size": "20", "max_overflow": "50"},
		"token":          {"provider": "fernet"},
		"fernet_tokens":  {"key_repository": l.path("ks", "fernet-keys")},
		"credential":     {"key_repository": l.path("ks", "credential-keys")},
		"identity":       {"password_hash_rounds": "4"},
		"fernet_receipt": {"key_repository": l.path("ks", "fernet-keys")},
	}
	if err := l.write(ks.String(), "ks", "keystone.conf"); err != nil {
		return err
	}
	if err := l.write(string(wsgiServer), "wsgi_server.py"); err != nil {
		return err
	}
	// Use an empty file of plugins, because the management interface would listen on another port.
	if err := l.write("[].\n", "rabbit", "plugins"); err != nil {
		return err
	}
	if err := l.write("log.console = true\nlog.console.level = warning\nvm_memory_high_watermark.absolute = 2GB\n"+
		"disk_free_limit.absolute = 50MB\n", "rabbit", "rabbitmq.conf"); err != nil {
		return err
	}
	for name, text := range l.opts.Environments {
		if err := l.write(text, "heat", "environment.d", name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(l.path("heat", "environment.d"), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(l.path("heat", "templates"), 0o700); err != nil {
		return err
	}
	return l.writeHeat()
}

// Configure changes settings of heat.conf for engines that are started later. They override Options.Heat.
func (l *Lab) Configure(settings map[string]map[string]string) error {
	changed := ini{}
	changed.merge(l.opts.Heat)
	changed.merge(settings)
	l.opts.Heat = changed
	return l.writeHeat()
}

// EnvironmentDir returns the engines' environment_dir.
func (l *Lab) EnvironmentDir() string { return l.path("heat", "environment.d") }

func (l *Lab) writeHeat() error {
	conf := l.heatConf()
	if l.opts.Brine != "" {
		if err := l.addBrine(conf); err != nil {
			return err
		}
	}
	conf.merge(l.opts.Heat)
	return l.write(conf.String(), "heat", "heat.conf")
}

func (l *Lab) heatConf() ini {
	cfn := l.url(l.ports.cfn)
	trustee := l.serviceAuth("heat")
	for _, name := range []string{"project_name", "project_domain_name", "www_authenticate_uri", "service_token_roles",
		"service_token_roles_required"} {
		delete(trustee, name)
	}
	return ini{
		"DEFAULT": {
			"transport_url":                 fmt.Sprintf("rabbit://guest:guest@%s/", l.hostPort(l.ports.amqp)),
			"plugin_dirs":                   strings.Join(l.opts.Plugins, ","),
			"environment_dir":               l.EnvironmentDir(),
			"template_dir":                  l.path("heat", "templates"),
			"num_engine_workers":            "1",
			"auth_encryption_key":           "0123456789abcdef0123456789abcdef",
			"heat_metadata_server_url":      cfn,
			"heat_waitcondition_server_url": cfn + "/v1/waitcondition",
			"stack_domain_admin":            "heat_domain_admin",
			"stack_domain_admin_password":   domainPassword,
			"stack_user_domain_name":        "heat",
			"region_name_for_services":      "RegionOne",
			"trusts_delegated_roles":        "heat_stack_owner",
			"max_stacks_per_tenant":         "1000",
			"max_resources_per_stack":       "-1",
			"max_events_per_stack":          "0", // otherwise Heat deletes older events, and tests count them
			"rpc_response_timeout":          "300",
		},
		"database":              {"connection": l.DSN("heat"), "max_pool_size": "20", "max_overflow": "100"},
		"paste_deploy":          {"api_paste_config": filepath.Join(l.heatHome(), "etc/heat/api-paste.ini")},
		"heat_api":              {"bind_host": "127.0.0.1", "bind_port": fmt.Sprint(l.ports.heat), "workers": "0"},
		"heat_api_cfn":          {"bind_host": "127.0.0.1", "bind_port": fmt.Sprint(l.ports.cfn), "workers": "0"},
		"keystone_authtoken":    l.serviceAuth("heat"),
		"trustee":               trustee,
		"clients_keystone":      {"auth_uri": l.url(l.ports.keystone)},
		"ec2authtoken":          {"auth_uri": l.url(l.ports.ec2) + "/v3"},
		"oslo_policy":           {"policy_file": l.path("heat", "policy.yaml")},
		"oslo_messaging_rabbit": {"rabbit_retry_interval": "1", "heartbeat_timeout_threshold": "0"},
	}
}

// addBrine configures brine's plugin as docs/openstack/heat.md says. Guests receive the addresses of all engines.
func (l *Lab) addBrine(conf ini) error {
	if err := l.write("\"\"\"Salt resources.\"\"\"\nfrom brine_openstack.heat import resource_mapping  # noqa: F401\n", "heat", "plugins",
		"brine.py"); err != nil {
		return err
	}
	var addrs []string
	for n := range max(l.opts.Engines, 1) {
		addrs = append(addrs, fmt.Sprintf("%s:%d", masterAddress(n), l.ports.ret))
	}
	dirs := append([]string{l.path("heat", "plugins")}, l.opts.Plugins...)
	conf["DEFAULT"]["plugin_dirs"] = strings.Join(dirs, ",")
	conf.merge(ini{"brine": {"program": l.opts.Brine, "publish_port": fmt.Sprint(l.ports.publish), "ret_port": fmt.Sprint(l.ports.ret),
		"advertise": strings.Join(addrs, ",")}})
	return nil
}

// masterAddress returns the address on which the master of engine n listens for minions. All masters use the same
// ports, as on separate hosts.
func masterAddress(n int) string { return fmt.Sprintf("127.0.0.%d", 1+n) }

// engineConf returns the options that are specific to engine n.
func (l *Lab) engineConf(n int) ini {
	conf := ini{"DEFAULT": {"host": engineName(n)}}
	if l.opts.Brine != "" {
		conf["brine"] = map[string]string{"directory": l.path("heat", fmt.Sprintf("brine-%d", n)), "interface": masterAddress(n)}
	}
	if l.opts.EngineHeat != nil {
		conf.merge(l.opts.EngineHeat(n))
	}
	return conf
}
