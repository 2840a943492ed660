// Package dockerargs translates the arguments of docker.create, docker.create_network and their states to Docker's
// API, in the two steps of stock: Salt's translation of the many notations for a value (salt/utils/dockermod), then
// docker-py 7's conversion of the result (docker/types). A table has one line for each argument; functions handle the
// rest.
//
// Values are plain: dictionaries lose their order, so the environment and everything else that becomes a list is
// sorted by name.
package dockerargs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Options are the arguments that control the translation.
type Options struct {
	// Skip is the argument skip_translate: True, or the names of arguments to leave as they are.
	Skip any
	// IgnoreCollisions permits an alias beside the argument that it stands for; the argument then counts.
	IgnoreCollisions bool
	// AnyAddress turns off the check of addresses (validate_ip_addrs=False).
	AnyAddress bool
}

// OptionsOf reads the options from a call that has Salt's three parameters for them.
func OptionsOf(c *modules.Call) Options {
	return Options{c.Value("skip_translate"), c.Bool("ignore_collisions"), !c.Bool("validate_ip_addrs")}
}

// The aliases of arguments: pairs of an alias and the argument that it means.
const networkAliases = " driver_opt options driver_opts options ipv6 enable_ipv6 ip_range iprange aux_address aux_addresses "

const containerAliases = " cmd command cpuset cpuset_cpus dns_option dns_opt env environment expose ports interactive stdin_open" +
	" ipc ipc_mode label labels memory mem_limit memory_swap memswap_limit publish port_bindings publish_all publish_all_ports" +
	" restart restart_policy rm auto_remove security_opts security_opt sysctl sysctls ulimit ulimits user_ns_mode userns_mode" +
	" volume volumes workdir working_dir "

// networkArgs lists the arguments of a network: the name and how its value is translated.
const networkArgs = `
attachable b
aux_addresses addresses
check_duplicate b
driver s
enable_ipv6 b
gateway ip
ingress b
internal b
ipam d
ipam_driver s
ipam_opts =
ipam_pools pools
iprange subnet
labels labels
options =
subnet subnet
`

// containerArgs lists the arguments of a container, those of docker-py's host configuration first and in its order. A
// line has the name, how the value is translated (- for unchanged), the place, and the API's name. Places are:
//
//	t   host configuration, if the value is true in Python
//	ti  the same, and the value must be an integer (ts: a text, tl: a list, td: a dictionary)
//	n   host configuration, if the value is not None (ni, nl: with a type)
//	h   host configuration, by a function
//	c   container configuration; c* by a function
//	-   nowhere; what docker-py ignores
const containerArgs = `
binds binds h Binds
port_bindings bindings h PortBindings
lxc_conf = h LxcConf
publish_all_ports b t PublishAllPorts
links : h Links
privileged b t Privileged
dns dns n Dns
dns_search l t DnsSearch
volumes_from l h VolumesFrom
network_mode s h NetworkMode
restart_policy restart td RestartPolicy
cap_add l t CapAdd
cap_drop l t CapDrop
devices l h Devices
extra_hosts hosts h ExtraHosts
read_only b n ReadonlyRootfs
pid_mode s t PidMode
ipc_mode s t IpcMode
security_opt l nl SecurityOpt
ulimits ulimits h Ulimits
log_config - h LogConfig
mem_limit bytes h Memory
memswap_limit bytes h MemorySwap
mem_reservation - h MemoryReservation
kernel_memory - h KernelMemory
mem_swappiness i ni MemorySwappiness
cgroup_parent - n CgroupParent
group_add l h GroupAdd
cpu_quota - ti CpuQuota
cpu_period i ti CpuPeriod
blkio_weight i ti BlkioWeight
blkio_weight_device weights tl BlkioWeightDevice
device_read_bps rates tl BlkioDeviceReadBps
device_write_bps rates tl BlkioDeviceWriteBps
device_read_iops numbers tl BlkioDeviceReadIOps
device_write_iops numbers tl BlkioDeviceWriteIOps
oom_kill_disable b t OomKillDisable
shm_size bytes h ShmSize
sysctls = h Sysctls
tmpfs d h Tmpfs
oom_score_adj i ti OomScoreAdj
dns_opt l n DnsOptions
cpu_shares i ti CpuShares
cpuset_cpus s t CpusetCpus
userns_mode s h UsernsMode
uts_mode - h UTSMode
pids_limit i ti PidsLimit
isolation s ts Isolation
auto_remove b t AutoRemove
storage_opt = n StorageOpt
init - n Init
init_path - h InitPath
volume_driver s n VolumeDriver
cpu_count - ti CpuCount
cpu_percent - ti CpuPercent
nano_cpus - ti NanoCpus
cpuset_mems s ts CpusetMems
runtime - t Runtime
mounts - n Mounts
cpu_rt_period - ti CPURealtimePeriod
cpu_rt_runtime - ti CPURealtimeRuntime
device_cgroup_rules - nl DeviceCgroupRules
device_requests - h DeviceRequests
cgroupns - t CgroupnsMode
image - c Image
command command c* Cmd
hostname s c Hostname
user user c* User
detach b c* -
stdin_open b c OpenStdin
tty b c Tty
ports ports c* ExposedPorts
environment = c* Env
volumes volumes c* Volumes
network_disabled b c NetworkDisabled
name s c* -
entrypoint command c* Entrypoint
working_dir dir c WorkingDir
domainname s c Domainname
host_config d c* HostConfig
labels labels c* Labels
stop_signal s c StopSignal
networking_config - c NetworkingConfig
healthcheck - c* Healthcheck
stop_timeout i c StopTimeout
use_config_proxy - c* -
platform - c* -
cpu_group i - -
log_driver s - -
log_opt = - -
mac_address s - -
`

// rows returns the lines of containerArgs as words.
func rows() [][]string {
	var out [][]string
	for line := range strings.Lines(containerArgs[1:]) {
		out = append(out, strings.Fields(line))
	}
	return out
}

// ClientArgs returns the arguments of docker-py's functions, as docker.get_client_args does.
func ClientArgs() map[string]any {
	host, create := []any{}, []any{}
	for _, row := range rows() {
		switch row[2][0] {
		case 'c':
			create = append(create, row[0])
		case 't', 'n', 'h':
			host = append(host, row[0])
		}
	}
	return map[string]any{
		"create_container": create, "host_config": host, "create_network": []any{},
		"connect_container_to_network": words("aliases links ipv4_address ipv6_address link_local_ips driver_opt mac_address"),
		"logs":                         words("stdout stderr stream timestamps tail since follow until"),
		"ipam_config":                  words("subnet iprange gateway aux_addresses"),
	}
}

func words(s string) []any {
	var out []any
	for w := range strings.FieldsSeq(s) {
		out = append(out, w)
	}
	return out
}

// Container translates the arguments of a container (salt/utils/dockermod/translate/container.py). The error is an
// [*modules.ExecError] that names all arguments that cannot be used.
func Container(kwargs map[string]any, o Options) (map[string]any, error) {
	t := &translation{args: containerArgs, aliases: strings.Fields(containerAliases), container: true, o: o}
	return t.run(kwargs)
}

// Network translates the arguments of a network (salt/utils/dockermod/translate/network.py). Errors are as those of [Container].
func Network(kwargs map[string]any, o Options) (map[string]any, error) {
	t := &translation{args: networkArgs, aliases: strings.Fields(networkAliases), o: o}
	return t.run(kwargs)
}

// translation is one run of Salt's translate_input.
type translation struct {
	args      string
	aliases   []string
	container bool
	skip      []string
	o         Options
}

// errUntouched means that Salt's function raises AttributeError for a value, which then stays unchanged.
var errUntouched = errors.New("untouched")

func (t *translation) run(given map[string]any) (map[string]any, error) {
	kw := map[string]any{}
	for k, v := range given {
		if !strings.HasPrefix(k, "__") {
			kw[k] = nested.Copy(v)
		}
	}
	if t.o.Skip == true {
		return kw, nil
	}
	switch v := t.o.Skip.(type) {
	case string:
		t.skip = split(v, ",")
	case []any:
		t.skip = stringList(v)
	}
	invalid, collisions := map[string]any{}, []any{}
	err := t.values(kw, invalid)
	if err == nil {
		if t.container {
			mergeLog(kw)
		}
		for i := 0; i < len(t.aliases); i += 2 {
			v, ok := kw[t.aliases[i]]
			if !ok {
				continue
			}
			delete(kw, t.aliases[i])
			if name := t.aliases[i+1]; has(kw, name) {
				collisions = append(collisions, "'"+t.aliasOf(name)+"' is an alias for '"+name+"', they cannot both be used")
			} else {
				kw[name] = v
			}
		}
		if t.container {
			err = t.finish(kw, invalid)
		} else if !has(kw, "check_duplicate") {
			kw["check_duplicate"] = true
		}
	}
	problems := map[string]any{}
	if err != nil {
		problems["error_message"] = modules.ExceptionText(err)
	}
	if len(invalid) > 0 {
		problems["invalid"] = invalid
	}
	if len(collisions) > 0 && !t.o.IgnoreCollisions {
		problems["collisions"] = collisions
	}
	if len(problems) > 0 {
		return nil, saltcmd.Problem("Failed to translate input", problems)
	}
	return kw, nil
}

func has(m map[string]any, key string) bool { _, ok := m[key]; return ok }

// aliasOf returns the last alias of a name, which is the one in Salt's reverse table.
func (t *translation) aliasOf(name string) (alias string) {
	for i := 0; i < len(t.aliases); i += 2 {
		if t.aliases[i+1] == name {
			alias = t.aliases[i]
		}
	}
	return alias
}

func (t *translation) realName(key string) string {
	for i := 0; i < len(t.aliases); i += 2 {
		if t.aliases[i] == key {
			return t.aliases[i+1]
		}
	}
	return key
}

// kind returns how the value of an argument is translated, or "" if it is not translated.
func (t *translation) kind(name string) string {
	for line := range strings.Lines(t.args) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name && f[1] != "-" {
			return f[1]
		}
	}
	return ""
}

// values translates each argument in place, and moves invalid ones to invalid.
func (t *translation) values(kw, invalid map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(kw)) {
		name := t.realName(key)
		if slices.Contains(t.skip, name) {
			continue
		}
		if d, ok := Repack(kw[key]); ok && key != "ipam_pools" {
			kw[key] = d
		}
		kind := t.kind(name)
		if kind == "" {
			continue
		}
		v, err := t.value(kind, kw[key])
		var usage *modules.UsageError
		switch {
		case err == nil:
			kw[key] = v
		case errors.Is(err, errUntouched):
		case errors.As(err, &usage):
			delete(kw, key)
			invalid[key] = usage.Msg
		default:
			return err
		}
	}
	return nil
}

// Repack merges a list of dictionaries with one entry each into one dictionary. ok is false for other values
// (salt.utils.data is_dictlist and repack_dictlist).
func Repack(v any) (d any, ok bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	text, other := map[string]any{}, map[any]any{}
	for _, x := range list {
		p := Pairs(x)
		if len(p) != 1 {
			return nil, false
		}
		if k, isText := p[0].Key.(string); isText {
			text[k] = p[0].Value
		} else {
			other[p[0].Key] = p[0].Value
		}
	}
	if len(other) == 0 {
		return text, true
	}
	for k, x := range text {
		other[k] = x
	}
	return other, true
}

// A Pair is an entry of a dictionary.
type Pair struct{ Key, Value any }

// Pairs returns the entries of a dictionary, sorted by key, or nil if v is not a dictionary.
func Pairs(v any) []Pair {
	var out []Pair
	switch m := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, Pair{k, m[k]})
		}
	case map[any]any:
		for _, k := range pytext.SortKeys(m) {
			out = append(out, Pair{k, m[k]})
		}
	}
	return out
}

func isDict(v any) bool {
	switch v.(type) {
	case map[string]any, map[any]any:
		return true
	}
	return false
}

func isInt(v any) bool {
	switch v.(type) {
	case int64, bool:
		return true
	}
	return false
}

// mergeLog merges log_driver and log_opt (_merge_keys).
func mergeLog(kw map[string]any) {
	driver, hasDriver := kw["log_driver"]
	opt, hasOpt := kw["log_opt"]
	delete(kw, "log_driver")
	delete(kw, "log_opt")
	if has(kw, "log_config") || !hasDriver && !hasOpt {
		return
	}
	if !hasDriver {
		driver = "none"
	}
	if !hasOpt {
		opt = map[string]any{}
	}
	kw["log_config"] = map[string]any{"Type": driver, "Config": opt}
}

// finish refuses arguments that exclude each other, and adds the volumes and ports that others imply (_post_processing).
func (t *translation) finish(kw, invalid map[string]any) error {
	if kw["port_bindings"] != nil && pytext.Truth(kw["publish_all_ports"]) {
		delete(kw, "port_bindings")
		invalid["port_bindings"] = "Cannot be used when publish_all_ports=True"
	}
	if kw["hostname"] != nil && kw["network_mode"] == "host" {
		delete(kw, "hostname")
		invalid["hostname"] = "Cannot be used when network_mode=True"
	}
	if binds := kw["binds"]; binds != nil && !t.skips("binds", "volume", "volumes") {
		var add []any
		if isDict(binds) {
			for _, p := range Pairs(binds) {
				if m, ok := p.Value.(map[string]any); ok && has(m, "bind") {
					add = append(add, m["bind"])
				}
			}
		} else if list, ok := binds.([]any); ok {
			for _, x := range list {
				if s, ok := x.(string); ok {
					if parts := split(s, ":"); len(parts) > 1 {
						add = append(add, parts[1])
					}
				}
			}
		}
		if list, ok := kw["volumes"].([]any); ok || !has(kw, "volumes") {
			for _, x := range add {
				if !nested.Contains(list, x) {
					list = append(list, x)
				}
			}
			if len(list) > 0 {
				kw["volumes"] = list
			}
		}
	}
	if bound := Pairs(kw["port_bindings"]); len(bound) > 0 && !t.skips("port_bindings", "expose", "ports") {
		list, _ := kw["ports"].([]any)
		for _, p := range bound {
			port, proto := p.Key, "tcp"
			if s, ok := port.(string); ok {
				num, name, _ := strings.Cut(s, "/")
				if port = any(num); name != "" {
					proto = name
				}
			}
			n, err := modules.ToInt(port)
			if err != nil {
				return err
			}
			if def := portDef(n, proto); !nested.Contains(list, def) {
				list = append(list, def)
			}
		}
		kw["ports"] = list
	}
	return nil
}

func (t *translation) skips(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(t.skip, n) })
}

// portDef returns a port in translated form: an integer for TCP, text for UDP.
func portDef(n int64, proto string) any {
	if strings.EqualFold(proto, "udp") {
		return fmt.Sprint(n, "/udp")
	}
	return n
}
